//! What a deployment sells of all that it could.

use super::Reader;

/// `TOOLS`: comma-separated names of the tools that are sold, such as `web_read`, `email*` for all names that begin so, or `own` for
/// the operator's own services. With `-` before it, what is not sold. Only such ones: all others are sold. Default: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChoice {
    sold: Vec<String>,
    not_sold: Vec<String>,
}

impl ToolChoice {
    pub fn is_everything(&self) -> bool {
        self.sold.is_empty() && self.not_sold.is_empty()
    }

    /// Whether a tool of this name is sold. What is named as not sold is not, whatever else is said.
    pub fn sells(&self, name: &str, is_own: bool) -> bool {
        let names = |words: &[String]| words.iter().any(|word| is_meant(word, name, is_own));
        !names(&self.not_sold) && (self.sold.is_empty() || names(&self.sold))
    }

    /// The words that mean none of these tools.
    pub fn unknown<'a>(&'a self, tools: &'a [(&str, bool)]) -> impl Iterator<Item = &'a str> {
        let words = self.sold.iter().chain(&self.not_sold).map(String::as_str);
        // Own services may come later.
        words.filter(|word| *word != OWN && !tools.iter().any(|(name, is_own)| is_meant(word, name, *is_own)))
    }
}

/// The word for the operator's own services.
const OWN: &str = "own";

fn is_meant(word: &str, name: &str, is_own: bool) -> bool {
    match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => word == name || (word == OWN && is_own),
    }
}

impl Reader<'_> {
    pub(super) fn tools(&mut self) -> ToolChoice {
        let mut choice = ToolChoice::default();
        for word in self.list("TOOLS") {
            match word.strip_prefix('-') {
                Some(word) => choice.not_sold.push(word.to_owned()),
                None => choice.sold.push(word),
            }
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> ToolChoice {
        let lookup = move |name: &str| (name == "TOOLS").then(|| text.to_owned());
        Reader { lookup: &lookup, problems: Vec::new() }.tools()
    }

    #[test]
    fn tools_are_chosen_by_name_beginning_and_kind() {
        let sold = |text: &'static str| {
            let all = [("web_read", false), ("web_search", false), ("email_send", false), ("parcels", true)];
            let choice = read(text);
            let sold: Vec<&str> =
                all.into_iter().filter(|(name, own)| choice.sells(name, *own)).map(|(name, _)| name).collect();
            sold.join(" ")
        };
        assert_eq!(sold(""), "web_read web_search email_send parcels");
        assert_eq!(sold("web*, own"), "web_read web_search parcels");
        assert_eq!(sold("-email*"), "web_read web_search parcels");
        assert_eq!(sold("web*,-web_search"), "web_read");
        assert_eq!(sold("-own"), "web_read web_search email_send");
        assert!(read(" ").is_everything());
        let unknown = read("web_raed,-sms*,own");
        assert_eq!(unknown.unknown(&[("web_read", false)]).collect::<Vec<_>>(), ["web_raed", "sms*"]);
    }
}
