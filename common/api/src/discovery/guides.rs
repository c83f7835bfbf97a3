//! The guides under `docs/` as agents read them: with this service's own address, and without links to files that are not
//! served.

use super::Site;

/// One guide.
pub struct Page {
    /// The last segment of its path.
    pub name: &'static str,
    pub about: &'static str,
    source: &'static str,
}

/// Guides for agents and sellers. The other files in that folder are for operators.
pub const PAGES: &[Page] = &[
    Page {
        name: "paying.md",
        about: "One purchase step by step; credits, tokens, budgets",
        source: include_str!("../../../../docs/PAYING.md"),
    },
    Page { name: "errors.md", about: "Every error and what to do", source: include_str!("../../../../docs/ERRORS.md") },
    Page {
        name: "receipts.md",
        about: "How charges are signed, added up and checked",
        source: include_str!("../../../../docs/RECEIPTS.md"),
    },
    Page {
        name: "marketplace.md",
        about: "Selling texts and services",
        source: include_str!("../../../../docs/MARKETPLACE.md"),
    },
    Page {
        name: "budgets.md",
        about: "Budgets, tokens with caps, freezes",
        source: include_str!("../../../../docs/BUDGETS.md"),
    },
    Page { name: "approvals.md", about: "Asking a person", source: include_str!("../../../../docs/APPROVALS.md") },
    Page { name: "webhooks.md", about: "Events posted to you", source: include_str!("../../../../docs/WEBHOOKS.md") },
    Page {
        name: "push.md",
        about: "Updates of jobs over a WebSocket",
        source: include_str!("../../../../docs/PUSH.md"),
    },
    Page { name: "mcp.md", about: "The MCP server", source: include_str!("../../../../docs/MCP.md") },
    Page {
        name: "checkout.md",
        about: "Checkout sessions (ACP)",
        source: include_str!("../../../../docs/CHECKOUT.md"),
    },
    Page { name: "programs.md", about: "Selling a program", source: include_str!("../../../../docs/PROGRAMS.md") },
    Page {
        name: "security.md",
        about: "What is trusted and what is not",
        source: include_str!("../../../../docs/SECURITY.md"),
    },
];

/// The address in the guides' examples.
const LOCAL: &str = "http://127.0.0.1:8402";

impl Page {
    pub(super) fn text(&self, site: &Site) -> String {
        without_files(&self.source.replace(LOCAL, &site.origin))
    }
}

/// Replaces links to files of the repository by their text.
fn without_files(text: &str) -> String {
    let mut parts = text.split("](../");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The link text starts at the last `[`.
        if let Some(opened) = kept.rfind('[') {
            kept.remove(opened);
        }
        kept.push_str(part.split_once(')').map_or(part, |(_, after)| after));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_become_text() {
        let text = "see [a](../x/a.py) and ([b c](../b.sh)), [D](D.md) [e](https://e.example)";
        assert_eq!(without_files(text), "see a and (b c), [D](D.md) [e](https://e.example)");
    }
}
