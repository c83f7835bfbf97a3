// SPDX-License-Identifier: MIT
// Copyright (c) the Agora authors. Permission is hereby granted, free of charge, to use, copy, modify and
// distribute this file. It comes without any warranty.
pragma solidity 0.8.37;

/// @title Several calls in one transaction.
/// @notice A receipt then holds the events of several payments, and code that looks for "the" Transfer must pick
/// the right one.
contract Batcher {
    /// @notice Runs all calls; if one fails everything is undone and its reason is passed on.
    function run(address target, bytes[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory answer) = target.call(calls[i]);
            if (!done) {
                assembly ("memory-safe") {
                    revert(add(answer, 32), mload(answer))
                }
            }
        }
    }

    /// @notice Runs all calls and lets failed ones be: the transaction succeeds although a payment in it did not.
    function tryRun(address target, bytes[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done,) = target.call(calls[i]);
            done;
        }
    }
}
