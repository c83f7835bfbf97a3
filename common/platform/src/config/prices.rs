//! Prices of the language model, and how many tokens an amount of money buys.

use base::money::Usdc;

const MILLION: u128 = 1_000_000;

/// Tokens of a prompt and of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl Tokens {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// Prices of a model, in USD for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPrices {
    pub input: Usdc,
    pub output: Usdc,
}

impl ModelPrices {
    /// The prices of an expensive model, used if none are set: too high a price loses sales, too low a price loses the
    /// operator's money.
    pub const DEFAULT: ModelPrices =
        ModelPrices { input: Usdc::from_micro(3_000_000), output: Usdc::from_micro(15_000_000) };

    /// Cost of the tokens, rounded up to a micro-USD.
    pub fn cost(self, tokens: Tokens) -> Usdc {
        let part = |tokens: u64, price: Usdc| u128::from(tokens).saturating_mul(u128::from(price.micro()));
        let cost = part(tokens.input, self.input).saturating_add(part(tokens.output, self.output)).div_ceil(MILLION);
        Usdc::from_micro(u64::try_from(cost).unwrap_or(u64::MAX))
    }

    /// The most output tokens that an amount pays for, after `question` input tokens.
    pub fn longest_answer(self, amount: Usdc, question: u64) -> u64 {
        let question = u128::from(question).saturating_mul(u128::from(self.input.micro()));
        let Some(left) = (u128::from(amount.micro()) * MILLION).checked_sub(question) else { return 0 };
        left.checked_div(u128::from(self.output.micro()))
            .map_or(u64::MAX, |most| u64::try_from(most).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The longest answer costs at most the amount; one token more would cost more.
        #[test]
        fn the_longest_answer_is_the_most_an_amount_pays_for(
            amount in 0u64..10_000_000_000,
            question in 0u64..10_000_000,
            input in 0u64..100_000_000,
            output in 1u64..200_000_000,
        ) {
            let prices = ModelPrices { input: Usdc::from_micro(input), output: Usdc::from_micro(output) };
            let longest = prices.longest_answer(Usdc::from_micro(amount), question);
            let cost = |output| prices.cost(Tokens { input: question, output }).micro();
            if longest > 0 {
                prop_assert!(cost(longest) <= amount);
            }
            prop_assert!(cost(longest + 1) > amount);
        }
    }

    #[test]
    fn a_free_model_has_no_longest_answer() {
        let free = ModelPrices { input: Usdc::ZERO, output: Usdc::ZERO };
        assert_eq!(free.longest_answer(Usdc::ZERO, 1_000), u64::MAX);
        assert_eq!(free.cost(Tokens { input: u64::MAX, output: u64::MAX }), Usdc::ZERO);
    }
}
