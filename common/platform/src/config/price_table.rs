//! The operator's prices: what replaces the catalog's prices and the platform's fee.

use std::collections::BTreeMap;

use base::money::Usdc;

use super::Reader;

/// The names that set a fee instead of a tool's price.
pub const PLATFORM_FEE: &str = "platform_fee";
pub const COMMERCE_FEE: &str = "commerce_fee";
/// The highest price of a tool: 1,000 USDC.
const MOST: Usdc = Usdc::from_micro(1_000_000_000);
const MICRO_PER_PERCENT: u64 = 10_000;

/// `PRICES`: a JSON object of tool names and prices in USDC, `platform_fee` and `commerce_fee`. Default: the catalog's prices, and
/// fees of 0.20 and 0.05. The catalog checks the names (`tools::spec::Catalog::unknown`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceTable {
    /// The new price by tool. For a tool whose price is computed, the new usual price.
    pub tools: BTreeMap<String, Usdc>,
    /// The platform's share of what souls sell and of what goals spend. It cannot be zero: it pays for the model that does the work,
    /// and it is the weight of buyers and ratings.
    pub platform_fee: FeeShare,
    /// What is added to what a shop takes.
    pub commerce_fee: FeeShare,
}

impl Default for PriceTable {
    fn default() -> PriceTable {
        PriceTable { tools: BTreeMap::new(), platform_fee: FeeShare::default(), commerce_fee: FeeShare(5) }
    }
}

/// A fee in whole per cent, from 1 to 50.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeShare(u8);

/// The platform's usual share.
impl Default for FeeShare {
    fn default() -> FeeShare {
        FeeShare(20)
    }
}

impl FeeShare {
    /// `None` if it is not from 1 to 50.
    pub fn of_percent(percent: u8) -> Option<FeeShare> {
        (1..=50).contains(&percent).then_some(FeeShare(percent))
    }

    pub fn percent(self) -> u8 {
        self.0
    }

    /// Reads a share such as `0.20`.
    fn parse(text: &str) -> Option<FeeShare> {
        let micro = Usdc::parse(text).ok()?.micro();
        let percent = micro.is_multiple_of(MICRO_PER_PERCENT).then_some(micro / MICRO_PER_PERCENT)?;
        FeeShare::of_percent(u8::try_from(percent).ok()?)
    }
}

impl PriceTable {
    pub(super) fn read(env: &mut Reader<'_>) -> PriceTable {
        let mut table = PriceTable::default();
        for (name, text) in env.names("PRICES") {
            let fee = match name.as_str() {
                PLATFORM_FEE => Some(&mut table.platform_fee),
                COMMERCE_FEE => Some(&mut table.commerce_fee),
                _ => None,
            };
            if let Some(fee) = fee {
                match FeeShare::parse(&text) {
                    Some(share) => *fee = share,
                    None => env.problem(
                        "PRICES",
                        format_args!("{name} must be from 0.01 to 0.50 with two decimals (got {text:?})"),
                    ),
                }
                continue;
            }
            let price = Usdc::parse(&text);
            match &price {
                Ok(price) if *price == Usdc::ZERO || *price > MOST => {
                    env.problem("PRICES", format_args!("{name} must be above 0 and at most {MOST} (got {text:?})"));
                }
                Ok(_) => {}
                Err(error) => env.problem("PRICES", format_args!("{name} {error} (got {text:?})")),
            }
            // Also with a bad price, so that the catalog checks this name in the same round.
            table.tools.insert(name, price.unwrap_or(Usdc::ZERO));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(prices: &str) -> Result<PriceTable, String> {
        let variable = |name: &str| match name {
            "PAY_TO" => Some("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266".to_owned()),
            "PRICES" => Some(prices.to_owned()),
            _ => None,
        };
        Config::read(variable).map(|config| config.prices).map_err(|errors| errors.to_string())
    }

    #[test]
    fn prices_and_the_fee_are_read() {
        assert_eq!(read(""), Ok(PriceTable::default()));
        let table = read(r#"{"web_read": "0.003", "email": "1000", "platform_fee": "0.05"}"#).unwrap();
        let prices: Vec<(&str, u64)> = table.tools.iter().map(|(name, price)| (name.as_str(), price.micro())).collect();
        assert_eq!(prices, [("email", 1_000_000_000), ("web_read", 3_000)]);
        assert_eq!(table.platform_fee.percent(), 5);
        for (text, percent) in [("0.01", 1), ("0.5", 50), ("0.50", 50), ("0.200", 20)] {
            let table = read(&format!(r#"{{"platform_fee": "{text}"}}"#)).unwrap();
            assert_eq!((table.platform_fee.percent(), table.tools.len()), (percent, 0), "{text}");
        }
    }

    #[test]
    fn every_bad_price_is_named() {
        let errors = read(
            r#"{"a": "-1", "b": "0", "c": "0.0000001", "d": "1000.000001", "e": "cheap", "f": "", "platform_fee": "0.51"}"#,
        )
        .unwrap_err();
        for name in ["a", "b", "c", "d", "e", "f", "platform_fee"] {
            assert!(errors.contains(&format!("PRICES {name} ")), "{name} in {errors}");
        }
        assert!(errors.contains("7 problem"), "{errors}");
        for fee in ["0", "0.001", "0.205", "1", "-0.2", "20%"] {
            assert!(read(&format!(r#"{{"platform_fee": "{fee}"}}"#)).is_err(), "{fee}");
        }
        for text in ["0.003", "[]", r#"{"web_read": 0.003}"#, r#"{"web_read": {"times": "2"}}"#, "{"] {
            assert!(read(text).unwrap_err().contains("PRICES must be a JSON object"), "{text}");
        }
    }
}
