// SPDX-License-Identifier: MIT
// Copyright (c) the Agora authors. Permission is hereby granted, free of charge, to use, copy, modify and
// distribute this file. It comes without any warranty.
pragma solidity 0.8.37;

/// @title Several reads in one call, at the address where client libraries look for it.
/// @notice Stands in for Multicall3 with the two functions that are in use: viem and alloy call `aggregate3`, the
/// public x402 facilitator `tryAggregate`. Without the latter it cannot tell why a payment would fail, and gives one
/// reason for everything.
contract Multicall {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        external
        payable
        returns (Result[] memory results)
    {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            results[i] = _call(calls[i].target, calls[i].callData, !requireSuccess);
        }
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            results[i] = _call(calls[i].target, calls[i].callData, calls[i].allowFailure);
        }
    }

    function _call(address target, bytes calldata data, bool allowFailure) private returns (Result memory) {
        (bool done, bytes memory answer) = target.call(data);
        require(done || allowFailure, "Multicall3: call failed");
        return Result(done, answer);
    }
}
