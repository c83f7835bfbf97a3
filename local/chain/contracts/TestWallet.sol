// SPDX-License-Identifier: MIT
// Copyright (c) the Agora authors. Permission is hereby granted, free of charge, to use, copy, modify and
// distribute this file. It comes without any warranty.
pragma solidity 0.8.37;

/// @title A small contract wallet (EIP-1271) for tests, with moods.
/// @notice It can be deployed (the owner goes to the constructor), planted as runtime code, or be what an
/// EIP-7702 account delegates to; the latter two call `initialize` once. Anybody may change the mood: this is a
/// test instrument, not a wallet for money.
contract TestWallet {
    /// How the wallet answers the question whether a signature is its own.
    enum Mood {
        Owner, // yes to the owner's 65-byte signature
        Anyone, // yes to everything
        Nobody, // no to everything
        Broken // reverts
    }

    bytes4 private constant YES = 0x1626ba7e;
    bytes4 private constant NO = 0xffffffff;

    address public owner;
    Mood public mood;
    /// @notice Gas to burn before answering ("gas bait"). A number above any limit burns everything.
    uint256 public appetite;

    constructor(address firstOwner) {
        owner = firstOwner;
    }

    function initialize(address firstOwner) external {
        require(owner == address(0), "TestWallet: has an owner");
        owner = firstOwner;
    }

    function setMood(Mood newMood) external {
        mood = newMood;
    }

    function setAppetite(uint256 gasToBurn) external {
        appetite = gasToBurn;
    }

    /// @notice Lets the owner act as the wallet, for example move its money away after having signed a payment.
    function execute(address target, bytes calldata call) external returns (bytes memory) {
        require(msg.sender == owner, "TestWallet: only the owner");
        (bool done, bytes memory answer) = target.call(call);
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        return answer;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        uint256 start = gasleft();
        while (start - gasleft() < appetite) {}
        if (mood == Mood.Anyone) return YES;
        if (mood == Mood.Nobody) return NO;
        require(mood != Mood.Broken, "TestWallet: broken");
        if (signature.length != 65) return NO;
        address signer = ecrecover(
            digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64])
        );
        return signer != address(0) && signer == owner ? YES : NO;
    }

    receive() external payable {}
}
