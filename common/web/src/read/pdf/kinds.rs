//! Small files, one for each way to hide, encode, add or turn text.

use super::read;
use super::samples::Sample;

/// What the file reads as, without its `# ` title. A reason if it has no text.
fn text(sample: &Sample) -> String {
    read(&sample.bytes(), 50_000).map_or_else(str::to_owned, |read| read.markdown)
}

/// A page with the line "Seen by all" and more content.
fn with(more: &str, resources: &str, page: &str, catalogue: &str, objects: &[&str]) -> String {
    let content = format!("BT /F1 12 Tf 72 720 Td (Seen by all) Tj ET\n{more}");
    text(&Sample::page(content.as_bytes(), resources, page, catalogue, objects))
}

const SECRET: &str = "BT /F1 12 Tf 72 650 Td (secret) Tj ET";

#[test]
fn text_that_nobody_sees_is_left_out() {
    let layers = "/OCProperties << /OCGs [7 0 R 8 0 R] /D << /OFF [7 0 R] >> >>";
    let all_off = "/OCProperties << /OCGs [7 0 R 8 0 R] /D << /BaseState /OFF /ON [8 0 R] >> >>";
    let viewed =
        "/OCProperties << /OCGs [7 0 R 8 0 R] /D << /AS [<< /Event /View /OCGs [7 0 R] /Category [/View] >>] >> >>";
    let off = "<< /Type /OCG /Name (L) /Usage << /View << /ViewState /OFF >> >> >>";
    let on = "<< /Type /OCG /Name (M) >>";
    let form =
        "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /OC 7 0 R stream BT /F1 12 Tf 72 650 Td (secret) Tj ET";
    let named = "/Properties << /L 9 0 R >>";
    let marked = "/OC /L BDC BT /F1 12 Tf 72 650 Td (secret) Tj ET /Span BMC EMC BT (secret) Tj ET EMC";
    // What is added, its resources, entries of the page and of the catalogue, objects.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a [&'a str]);
    let hidden: [Case; 36] = [
        ("a layer that is off", marked, "/Properties << /L 7 0 R >>", "", layers, &[off, on]),
        ("a layer off by default", marked, "/Properties << /L 7 0 R >>", "", all_off, &[off, on]),
        ("a layer off when viewed", marked, "/Properties << /L 7 0 R >>", "", viewed, &[off, on]),
        ("any of no layer on", marked, named, "", layers, &[off, on, "<< /Type /OCMD /OCGs 7 0 R >>"]),
        ("all on", marked, named, "", layers, &[off, on, "<< /Type /OCMD /OCGs [7 0 R 8 0 R] /P /AllOn >>"]),
        ("all off", marked, named, "", layers, &[off, on, "<< /Type /OCMD /OCGs [7 0 R 8 0 R] /P /AllOff >>"]),
        (
            "an expression",
            marked,
            named,
            "",
            layers,
            &[off, on, "<< /Type /OCMD /VE [/And 8 0 R [/Not [/Or 8 0 R 7 0 R]]] >>"],
        ),
        ("a form of a layer", "/X Do", "/XObject << /X 9 0 R >>", "", layers, &[off, on, form]),
        ("below the page", "BT /F1 12 Tf 72 -90 Td (secret) Tj ET", "", "", "", &[]),
        ("right of the page", "BT /F1 12 Tf 1 0 0 1 700 90 Tm (secret) Tj ET", "", "", "", &[]),
        ("outside the crop box", SECRET, "", "/CropBox [0 700 612 792]", "", &[]),
        ("no ink", "3 Tr BT /F1 12 Tf 72 650 Td (secret) Tj ET", "", "", "", &[]),
        (
            "no ink beside a small picture",
            "q 50 0 0 50 72 640 cm /I Do Q 3 Tr BT /F1 12 Tf 72 650 Td (secret) Tj ET",
            "/XObject << /I 7 0 R >>",
            "",
            "",
            &["/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray stream x"],
        ),
        ("clipped", "q 10 10 20 20 re W n BT /F1 12 Tf 72 650 Td (secret) Tj ET Q", "", "", "", &[]),
        ("clipped to nothing", "q W n BT /F1 12 Tf 72 650 Td (secret) Tj ET Q", "", "", "", &[]),
        (
            "outside its form",
            "/X Do",
            "/XObject << /X 7 0 R >>",
            "",
            "",
            &["/Type /XObject /Subtype /Form /BBox [0 0 9 9] stream BT /F1 12 Tf 72 650 Td (secret) Tj ET"],
        ),
        ("white", "1 1 1 rg BT /F1 12 Tf 72 650 Td (secret) Tj ET", "", "", "", &[]),
        (
            "white by profile",
            "/C cs 1 1 1 scn BT /F1 12 Tf 72 650 Td (secret) Tj ET",
            "/ColorSpace << /C [/ICCBased 7 0 R] >>",
            "",
            "",
            &["/N 3 stream x"],
        ),
        ("no cyan, magenta, yellow or black", "0 0 0 0 k BT /F1 12 Tf 72 650 Td (secret) Tj ET", "", "", "", &[]),
        (
            "white beside a dark box",
            "0 g 300 640 50 50 re f 1 g BT /F1 12 Tf 72 650 Td (secret) Tj ET",
            "",
            "",
            "",
            &[],
        ),
        ("white outlines", "1 Tr 1 G BT /F1 12 Tf 72 650 Td (secret) Tj ET", "", "", "", &[]),
        (
            "in the colour of its box",
            "0 0 1 rg 60 600 300 80 re f BT /F1 12 Tf 72 650 Td (secret) Tj ET",
            "",
            "",
            "",
            &[],
        ),
        ("transparent", "/G gs BT /F1 12 Tf 72 650 Td (secret) Tj ET", "/ExtGState << /G << /ca 0 >> >>", "", "", &[]),
        ("below a box", &format!("{SECRET} 0 g 60 640 200 40 re f"), "", "", "", &[]),
        ("below a box of lines", &format!("{SECRET} 60 630 m 360 630 l 360 670 l 60 670 l h f"), "", "", "", &[]),
        (
            "in the colour of lines around it",
            &format!("60 630 m 60 670 l 360 670 l 360 630 l 60 630 l f {SECRET}"),
            "",
            "",
            "",
            &[],
        ),
        (
            "in a transparent group",
            "/G gs /X Do",
            "/ExtGState << /G << /ca 0 >> /H << /ca 1 >> >> /XObject << /X 7 0 R >>",
            "",
            "",
            &[
                "/Subtype /Form /BBox [0 0 612 792] /Group << /S /Transparency >> stream /H gs BT /F1 12 Tf 72 650 Td (secret) Tj ET",
            ],
        ),
        (
            "below a picture",
            &format!("{SECRET} q 200 0 0 40 60 640 cm /I Do Q"),
            "/XObject << /I 7 0 R >>",
            "",
            "",
            &["/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray stream x"],
        ),
        ("white on a white line", &format!("1 g 60 652 200 2 re f {SECRET}"), "", "", "", &[]),
        (
            "no amount of a named ink",
            &format!("/S cs 0 scn {SECRET}"),
            "/ColorSpace << /S [/Separation /Ink /DeviceGray 7 0 R] >>",
            "",
            "",
            &["<< >>"],
        ),
        (
            "white by lightness",
            &format!("/L cs 100 0 0 scn {SECRET}"),
            "/ColorSpace << /L [/Lab << >>] >>",
            "",
            "",
            &[],
        ),
        ("pressed together", &format!("1 Tz {SECRET}"), "", "", "", &[]),
        (
            "a form within forms",
            "/X Do",
            "/XObject << /X 9 0 R >>",
            "",
            layers,
            &[
                off,
                on,
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 10 0 R >> >> stream /X Do",
                form,
            ],
        ),
        ("a deep state", &format!("{} 3 Tr q Q {SECRET}", "q ".repeat(1_200)), "", "", "", &[]),
        ("transparent outlines", &format!("2 Tr /G gs {SECRET}"), "/ExtGState << /G << /ca 0 /CA 0 >> >>", "", "", &[]),
        ("too small", "BT /F1 1 Tf 1 0 0 1 72 650 Tm (secret) Tj ET", "", "", "", &[]),
    ];
    for (name, more, resources, page, catalogue, objects) in hidden {
        assert_eq!(with(more, resources, page, catalogue, objects), "Seen by all", "{name}");
    }
}

#[test]
fn text_that_is_seen_is_kept() {
    let layers = "/OCProperties << /OCGs [7 0 R 8 0 R] /D << /OFF [7 0 R] >> >>";
    let (off, on) = ("<< /Type /OCG /Name (L) >>", "<< /Type /OCG /Name (M) >>");
    let named = "/Properties << /L 9 0 R >>";
    let marked = "/OC /L BDC BT /F1 12 Tf 72 650 Td (also) Tj ET EMC";
    let plain = "BT /F1 12 Tf 72 650 Td (also) Tj ET";
    let seen: [(&str, String, &str, &str, &[&str]); 23] = [
        ("a layer that is on", marked.replace("/L", "/M"), "/Properties << /M 8 0 R >>", layers, &[off, on]),
        ("any layer on", marked.into(), named, layers, &[off, on, "<< /Type /OCMD /OCGs [7 0 R 8 0 R] >>"]),
        ("any off", marked.into(), named, layers, &[off, on, "<< /Type /OCMD /OCGs [7 0 R 8 0 R] /P /AnyOff >>"]),
        (
            "after a hidden layer",
            format!("/OC /L BDC /Span BMC EMC EMC {plain}"),
            "/Properties << /L 7 0 R >>",
            layers,
            &[off, on],
        ),
        ("white on a dark box", format!("0 g 60 600 300 80 re f 1 g {plain}"), "", "", &[]),
        ("white on a dark shape", format!("0 g 60 600 m 400 600 l 300 700 l f 1 g {plain}"), "", "", &[]),
        ("white on a thick line", format!("30 w 60 655 m 400 655 l S 1 g {plain}"), "", "", &[]),
        ("beside a shape", format!("{plain} 60 600 m 400 600 l 300 700 l 60 601 l f"), "", "", &[]),
        ("below a round shape", format!("{plain} 60 630 m 360 630 l 360 670 l 60 670 60 640 60 630 c f"), "", "", &[]),
        (
            "below a mixed group",
            format!("{plain} /G gs /X Do"),
            "/ExtGState << /G << /BM /Multiply >> /H << /BM /Normal /ca 1 >> >> /XObject << /X 7 0 R >>",
            "",
            &[
                "/Subtype /Form /BBox [0 0 612 792] /Group << /S /Transparency >> stream /H gs 1 1 0 rg 60 640 300 40 re f",
            ],
        ),
        ("struck through", format!("{plain} 72 653 80 1 re f"), "", "", &[]),
        ("over its strike", format!("72 653 80 1 re f {plain}"), "", "", &[]),
        ("white on dark stripes", format!("0 g 60 648 300 4 re f 60 652 300 4 re f 1 g {plain}"), "", "", &[]),
        (
            "below a marker",
            format!("{plain} /G gs 1 1 0 rg 60 640 300 40 re f"),
            "/ExtGState << /G << /BM /Multiply >> >>",
            "",
            &[],
        ),
        ("a missing font", plain.replace("/F1", "/None"), "", "", &[]),
        ("a deep state", format!("{} q 3 Tr Q {plain}", "q ".repeat(999)), "", "", &[]),
        (
            "forms in forms",
            "/X Do".into(),
            "/XObject << /X 7 0 R >>",
            "",
            &[
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 8 0 R >> >> stream /X Do",
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 9 0 R >> >> stream /X Do",
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 10 0 R >> >> stream /X Do",
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 11 0 R >> >> stream /X Do",
                "/Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 12 0 R >> >> stream /X Do",
                "/Subtype /Form /BBox [0 0 612 792] stream BT /F1 12 Tf 72 650 Td (also) Tj ET",
            ],
        ),
        ("white letters with dark outlines", format!("2 Tr 1 g 0 G {plain}"), "", "", &[]),
        (
            "painted through its outlines",
            "q BT 7 Tr /F1 12 Tf 72 650 Td (also) Tj ET 1 0 0 rg 0 0 612 792 re f Q".into(),
            "",
            "",
            &[],
        ),
        ("within a clip", format!("q 60 640 200 40 re W n {plain} Q"), "", "", &[]),
        ("dark after white", format!("q 1 g Q {plain}"), "", "", &[]),
        (
            "a spot colour",
            format!("/S cs 1 scn {plain}"),
            "/ColorSpace << /S [/Separation /Ink /DeviceGray 7 0 R] >>",
            "",
            &["<< >>"],
        ),
        ("small letters made large", "q 20 0 0 20 0 0 cm BT /F1 .6 Tf 3 30 Td (also) Tj ET Q".into(), "", "", &[]),
    ];
    for (name, more, resources, catalogue, objects) in seen {
        assert_eq!(with(&more, resources, "", catalogue, objects), "Seen by all\n\nalso", "{name}");
    }
}

#[test]
fn recognised_text_of_a_scan_is_read() {
    let image =
        "/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray stream x";
    let scan = "q 600 0 0 780 5 5 cm /I Do Q BT 3 Tr /F1 12 Tf 72 650 Td (Recognised words) Tj ET";
    let sample = Sample::page(scan.as_bytes(), "/XObject << /I 7 0 R >>", "", "", &[image]);
    assert_eq!(text(&sample), "Recognised words");
    // With a stamp on it.
    assert_eq!(with(scan, "/XObject << /I 7 0 R >>", "", "", &[image]), "Seen by all\n\nRecognised words");
    let clear = "q 600 0 0 780 5 5 cm /I Do Q /G gs BT /F1 12 Tf 72 650 Td (Recognised words) Tj ET";
    let resources = "/XObject << /I 7 0 R >> /ExtGState << /G << /ca 0 >> >>";
    assert_eq!(text(&Sample::page(clear.as_bytes(), resources, "", "", &[image])), "Recognised words");
    let first = "BT 3 Tr /F1 12 Tf 72 650 Td (Below) Tj ET q 600 0 0 780 5 5 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q";
    assert_eq!(text(&Sample::page(first.as_bytes(), "", "", "", &[])), "Below");
}

/// A page whose font is this object, number 7.
fn encoded(font: &str, shown: &str, objects: &[&str]) -> String {
    let content = format!("BT /F2 12 Tf 72 720 Td {shown} Tj ET");
    let objects: Vec<&str> = [font].into_iter().chain(objects.iter().copied()).collect();
    text(&Sample::page(content.as_bytes(), "/Font << /F2 7 0 R >>", "", "", &objects))
}

#[test]
fn letters_of_a_font_come_from_all_that_it_says() {
    let table = "stream beginbfchar <41> <0058> <0042> <0059> <43> <0000> endbfchar";
    let cases: [(&str, &str, &str, &str, &[&str]); 17] = [
        (
            "a gap in its table",
            "/Subtype /Type1 /Encoding /WinAnsiEncoding /ToUnicode 8 0 R",
            "(ABC\\200z)",
            "XYC€z",
            &[table],
        ),
        ("a gap without an encoding", "/Subtype /Type1 /ToUnicode 8 0 R", "(A-q)", "X-q", &[table]),
        (
            "a table without a grammar",
            "/Subtype /Type1 /ToUnicode 8 0 R",
            "(a)",
            "1",
            &["stream 1 beginbfrange<61><62>[<0031><0032>]endbfrange"],
        ),
        (
            "differences",
            "/Subtype /Type1 /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [0 /.notdef 128 /eacute 65 /uni20AC /u1F600 /a.alt /f_i /g69 /g123 300 /x] >>",
            "(\\000\\200ABCDEFz)",
            "é€\u{1f600}afiE\u{fffd}z",
            &[],
        ),
        (
            "a table with codes of another length",
            "/Subtype /Type0 /Encoding /Identity-H /ToUnicode 8 0 R /DescendantFonts [<< >>]",
            "<0041>",
            "X",
            &[table],
        ),
        (
            "an encoding in the font",
            "/Subtype /Type1 /FontDescriptor << /FontFile 8 0 R >>",
            "(a\\013)",
            "Bff",
            &["stream %! /Encoding 256 array dup 97 /B put dup 11 /ff put readonly def eexec"],
        ),
        (
            "letters whose box is wrong",
            "/Subtype /Type3 /FontMatrix [1 0 0 -1 0 0] /FontBBox [0 0 .01 -.01] /FirstChar 97 /Widths [.6] /Encoding << /Differences [97 /a97] >>",
            "(a)",
            "a",
            &[],
        ),
        (
            "differences by reference",
            "/Subtype /TrueType /Encoding << /Differences 8 0 R >>",
            "(a\\222)",
            "é’",
            &["[97 /eacute]"],
        ),
        ("Symbol", "/Subtype /Type1 /BaseFont /Symbol", "(abW\\245)", "αβΩ∞", &[]),
        ("ZapfDingbats", "/Subtype /Type1 /BaseFont /ZapfDingbats", "(4\\254)", "✔①", &[]),
        (
            "letters drawn in a space of their own",
            "/Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FontBBox [0 0 100 100] /FirstChar 97 /Widths [60] /Encoding << /Differences [97 /one] >>",
            "(a)",
            "1",
            &[],
        ),
        ("a ligature", "/Subtype /Type1 /Encoding << /Differences [1 /fi] >>", "(\\001n)", "fin", &[]),
        (
            "codes of two bytes",
            "/Subtype /Type0 /Encoding /Identity-H /ToUnicode 8 0 R /DescendantFonts [<< >>]",
            "<00420003>",
            "Y\u{fffd}",
            &[table],
        ),
        (
            "a CMap of its own",
            "/Subtype /Type0 /Encoding 8 0 R /ToUnicode 9 0 R /DescendantFonts [<< >>]",
            "<418100>",
            "Xa",
            &[
                "/CMapName /Own stream begincodespacerange <00> <80> <8100> <81ff> endcodespacerange",
                "stream beginbfchar <41> <0058> <8100> <0061> endbfchar",
            ],
        ),
        (
            "glyph numbers of a collection",
            "/Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< /CIDSystemInfo << /Registry (Adobe) /Ordering (Korea1) >> >>]",
            "<1e000022>",
            "港A",
            &[],
        ),
        (
            "a CMap of its own to a collection",
            "/Subtype /Type0 /Encoding 8 0 R /DescendantFonts [<< /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) >> >>]",
            "<0141>",
            "港",
            &[
                "/CMapName /Own stream begincodespacerange <0000> <ffff> endcodespacerange begincidrange <0140> <0150> 2002 endcidrange",
            ],
        ),
        (
            "ASCII of a collection",
            "/Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) >> >>]",
            "<00220043>",
            "Ab",
            &[],
        ),
    ];
    for (name, font, shown, expected, objects) in cases {
        assert_eq!(encoded(&format!("<< /Type /Font {font} >>"), shown, objects), expected, "{name}");
    }
}

#[test]
fn predefined_cmaps_are_charsets() {
    let cases = [
        ("90ms-RKSJ-H", "<8d6082ccaa41>", "港のｪA"),
        ("90pv-RKSJ-H", "<8d60>", "港"),
        ("EUC-H", "<b9c1>", "港"),
        ("GBK-EUC-H", "<b8db41>", "港A"),
        ("GB-EUC-V", "<b8db>", "港"),
        ("ETen-B5-H", "<b4e4>", "港"),
        ("KSCms-UHC-H", "<c7d7>", "항"),
        ("UniGB-UTF16-H", "<6e2f0041>", "港A"),
        ("UniJIS-UCS2-HW-H", "<6e2f>", "港"),
    ];
    for (name, shown, expected) in cases {
        let font = format!("<< /Type /Font /Subtype /Type0 /Encoding /{name} /DescendantFonts [<< /DW 1000 >>] >>");
        assert_eq!(encoded(&font, shown, &[]), expected, "{name}");
    }
}

#[test]
fn the_end_of_a_saved_state_restores_its_font_and_spacing() {
    let fonts = "/Font << /F1 3 0 R /F2 7 0 R >> /ExtGState << /G << /Font [7 0 R 12] >> >>";
    let symbol = "<< /Type /Font /Subtype /Type1 /BaseFont /Symbol >>";
    for inside in ["/F2 12 Tf 20 Tc 3 Tr 10 Tz", "/G gs", "/F2 900 Tf"] {
        let content = format!("/F1 12 Tf q {inside} Q BT 72 720 Td (Plain) Tj ( words) Tj ET");
        assert_eq!(text(&Sample::page(content.as_bytes(), fonts, "", "", &[symbol])), "Plain words", "{inside}");
    }
    let content = b"q /G gs BT 72 720 Td (a) Tj ET Q";
    assert_eq!(text(&Sample::page(content, fonts, "", "", &[symbol])), "α");
}

#[test]
fn form_fields_and_typed_comments_are_read() {
    let look = "/Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R >> >> stream /Tx BMC q BT /F1 12 Tf 2 5 Td (Jane) Tj ET Q EMC";
    let below = "Seen by all\n\nJane";
    let cases: [(&str, &str, &[&str], &str); 14] = [
        ("a field", "/Subtype /Widget /Rect [72 600 272 620] /AP << /N 8 0 R >>", &[look], below),
        (
            "a field beside its label",
            "/Subtype /Widget /Rect [160 715 360 735] /AP << /N 8 0 R >>",
            &[look],
            "Seen by all Jane",
        ),
        (
            "a state",
            "/Subtype /Widget /Rect [72 600 272 620] /AS /On /AP << /N << /On 8 0 R /Off 9 0 R >> >>",
            &[look],
            below,
        ),
        (
            "another state",
            "/Subtype /Widget /Rect [72 600 272 620] /AS /Off /AP << /N << /On 8 0 R >> >>",
            &[look],
            "Seen by all",
        ),
        ("a scaled field", "/Subtype /Widget /Rect [72 600 472 640] /AP << /N 8 0 R >>", &[look], below),
        ("a comment", "/Subtype /FreeText /Rect [72 600 272 620] /AP << /N 8 0 R >> /Contents (Other)", &[look], below),
        ("a comment without a look", "/Subtype /FreeText /Rect [72 600 272 620] /Contents (Jane)", &[], below),
        ("a field without a look", "/Subtype /Widget /FT /Tx /V (Jane) /Rect [72 600 272 620]", &[], below),
        (
            "a field in two objects",
            "/Subtype /Widget /Parent 8 0 R /Rect [72 600 272 620]",
            &["<< /FT /Ch /V (Jane) >>"],
            below,
        ),
        ("a password", "/Subtype /Widget /FT /Tx /Ff 8192 /V (Jane) /Rect [72 600 272 620]", &[], "Seen by all"),
        ("a hidden field", "/Subtype /Widget /F 2 /Rect [72 600 272 620] /AP << /N 8 0 R >>", &[look], "Seen by all"),
        (
            "a field not to be viewed",
            "/Subtype /Widget /F 32 /Rect [72 600 272 620] /AP << /N 8 0 R >>",
            &[look],
            "Seen by all",
        ),
        ("a field off the page", "/Subtype /Widget /Rect [72 -90 272 -70] /AP << /N 8 0 R >>", &[look], "Seen by all"),
        ("a field without a size", "/Subtype /Widget /Rect [72 600 72 600] /AP << /N 8 0 R >>", &[look], "Seen by all"),
    ];
    for (name, annotation, objects, expected) in cases {
        let annotation = format!("<< /Type /Annot {annotation} >>");
        let objects: Vec<&str> = [annotation.as_str()].into_iter().chain(objects.iter().copied()).collect();
        assert_eq!(with("", "", "/Annots [7 0 R]", "", &objects), expected, "{name}");
    }
}

#[test]
fn values_of_fields_are_read_as_viewers_show_them() {
    let look = "/Subtype /Form /BBox [0 0 200 20] stream /Tx BMC BT /Helv 12 Tf 2 5 Td (Jane) Tj ET EMC";
    let empty = "/Subtype /Form /BBox [0 0 200 20] stream /Tx BMC EMC";
    let renewed = "/AcroForm << /NeedAppearances true >>";
    let cases: [(&str, &str, &[&str], &str); 5] = [
        ("fonts of all fields", "/AP << /N 8 0 R >>", &[look], "/AcroForm << /DR << /Font << /Helv 3 0 R >> >> >>"),
        ("an old look", "/FT /Tx /V (Jane) /AP << /N 8 0 R >>", &[empty], renewed),
        ("a new look without a value", "/FT /Tx /AP << /N 8 0 R >>", &[look], renewed),
        ("fields in fields", "/Parent 8 0 R", &["<< /Parent 9 0 R >>", "<< /FT /Tx /V (Jane) >>"], ""),
        ("a choice", "/FT /Ch /V [(j)] /Opt [(x) [(j) (Jane)]]", &[], ""),
    ];
    for (name, entries, objects, catalogue) in cases {
        let annotation = format!("<< /Type /Annot /Subtype /Widget /Rect [72 600 272 620] {entries} >>");
        let objects: Vec<&str> = [annotation.as_str()].into_iter().chain(objects.iter().copied()).collect();
        assert_eq!(with("", "", "/Annots [7 0 R]", catalogue, &objects), "Seen by all\n\nJane", "{name}");
    }
}

#[test]
fn units_of_a_page_count_for_the_size_of_letters() {
    let content = b"BT /F1 1 Tf 7 70 Td (Large) Tj ET";
    let page = "/MediaBox [0 0 61 79] /UserUnit 10";
    assert_eq!(text(&Sample::page(content, "", page, "", &[])), "Large");
}

#[test]
fn turned_lines_are_lines() {
    let cases = [
        ("up", "0 1 -1 0 100 100 Tm (Turned) Tj 0 1 -1 0 100 150 Tm (words) Tj 0 1 -1 0 114 100 Tm (here) Tj", ""),
        ("down", "0 -1 1 0 100 700 Tm (Turned) Tj 0 -1 1 0 100 650 Tm (words) Tj 0 -1 1 0 86 700 Tm (here) Tj", ""),
        (
            "upside down",
            "-1 0 0 -1 400 400 Tm (Turned) Tj -1 0 0 -1 350 400 Tm (words) Tj -1 0 0 -1 400 414 Tm (here) Tj",
            "",
        ),
        (
            "slanted",
            ".7071 .7071 -.7071 .7071 100 100 Tm (Turned) Tj .7071 .7071 -.7071 .7071 135.4 135.4 Tm (words) Tj .7071 .7071 -.7071 .7071 109.9 90.1 Tm (here) Tj",
            "",
        ),
        (
            "by the page",
            "0 1 -1 0 100 100 Tm (Turned) Tj 0 1 -1 0 100 150 Tm (words) Tj 0 1 -1 0 114 100 Tm (here) Tj",
            "/Rotate 90",
        ),
        (
            "backward",
            "/F1 -12 Tf -1 0 0 -1 100 700 Tm (Turned) Tj -1 0 0 -1 150 700 Tm (words) Tj -1 0 0 -1 100 686 Tm (here) Tj",
            "",
        ),
    ];
    for (name, shown, page) in cases {
        let content = format!("BT /F1 12 Tf {shown} ET");
        let read = text(&Sample::page(content.as_bytes(), "", page, "", &[]));
        assert!(["Turned words\nhere", "Turned words here"].contains(&read.as_str()), "{name}: {read}");
    }
}

#[test]
fn lines_from_right_to_left_are_read_from_the_right() {
    let font = "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [97 /uni05D0 /uni05D1 /uni05D2 /uniFEFB /uniFEB3] >> >>";
    for (name, shown, expected) in [
        ("one piece", "(cba ab \\(12\\)) Tj", "(12) בא אבג"),
        ("words from left to right", "(cb) Tj 30 0 Td (a) Tj", "א בג"),
        ("words from right to left", "(a) Tj -30 0 Td (cb) Tj", "א בג"),
        ("shapes of Arabic letters", "(de) Tj", "سلا"),
    ] {
        let content = format!("BT /F2 12 Tf 300 720 Td {shown} ET");
        let sample = Sample::page(content.as_bytes(), "/Font << /F2 7 0 R >>", "", "", &[font]);
        assert_eq!(text(&sample), expected, "{name}");
    }
}
