//! Files that run when they are opened, by their extension.

/// What Gmail (support.google.com/mail/answer/6590), Outlook ("Blocked attachments in Outlook") or SES ("Unsupported
/// attachment types") refuse. A mail with one of them arrives without it, or not at all. Sorted.
const EXTENSIONS: [&str; 152] = [
    "ade", "adp", "apk", "app", "appcontent-ms", "application", "appref-ms", "appx", "appxbundle", "asp", "aspx",
    "asx", "bas", "bat", "bgi", "cab", "cdxml", "cer", "chm", "cmd", "cnt", "com", "cpl", "crt", "csh", "der",
    "diagcab", "diagcfg", "diagpkg", "dll", "dmg", "ex", "ex_", "exe", "fxp", "gadget", "grp", "hlp", "hpj", "hta",
    "htc", "img", "inf", "ins", "iso", "isp", "its", "jar", "jnlp", "js", "jse", "ksh", "lib", "library-ms", "lnk",
    "mad", "maf", "mag", "mam", "maq", "mar", "mas", "mat", "mau", "mav", "maw", "mcf", "mda", "mdb", "mde", "mdt",
    "mdw", "mdz", "mht", "mhtml", "mjs", "msc", "msh", "msh1", "msh1xml", "msh2", "msh2xml", "mshxml", "msi",
    "msix", "msixbundle", "msp", "mst", "msu", "nsh", "ops", "osd", "pcd", "pif", "pl", "plg", "prf", "prg",
    "printerexport", "ps1", "ps1xml", "ps2", "ps2xml", "psc1", "psc2", "psd1", "psdm1", "psm1", "pssc", "pst", "py",
    "pyc", "pyo", "pyw", "pyz", "pyzw", "reg", "scf", "scr", "sct", "search-ms", "searchconnector-ms",
    "settingcontent-ms", "shb", "shs", "sys", "theme", "tmp", "udl", "url", "vb", "vbe", "vbp", "vbs", "vhd",
    "vhdx", "vps", "vsmacros", "vss", "vst", "vsw", "vxd", "webpnp", "website", "ws", "wsb", "wsc", "wsf", "wsh",
    "xbap", "xll", "xnk",
];

/// Whether mail hosts refuse a file of this name.
pub(crate) fn is_program(name: &str) -> bool {
    // Windows ignores dots and spaces at the end.
    let bare = name.trim_end_matches(|letter: char| letter == '.' || letter.is_whitespace());
    let extension = bare.rsplit_once('.').map(|(_, extension)| extension.trim().to_ascii_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.binary_search(&extension.as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_each_list_are_known_and_documents_are_not() {
        assert!(EXTENSIONS.is_sorted());
        let of_gmail = ["setup.ex_", "a.appxbundle", "a.diagcab", "a.mjs", "a.vhd", "a.xll", "a.jnlp"];
        let of_outlook = ["a.settingcontent-ms", "a.appref-ms", "a.pyzw", "a.website", "a.vhdx", "a.mht", "a.application"];
        let of_ses = ["a.bas", "a.hlp", "a.mda", "a.ps2xml", "a.url", "a.ws", "a.vss"];
        let hidden = ["a.pdf.EXE", "a.js. .", "a. exe", "a.scr\u{3000}"];
        for name in of_gmail.into_iter().chain(of_outlook).chain(of_ses).chain(hidden) {
            assert!(is_program(name), "{name}");
        }
        for name in ["a.pdf", "a.exe.zip", "exe", "a.docx", "a.csv", "a.json", "a.html", "a.ics", "a.wasm", "a.rs"] {
            assert!(!is_program(name), "{name}");
        }
    }
}
