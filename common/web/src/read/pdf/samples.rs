//! PDF files for tests, good and hostile.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A file of objects, the catalogue first, written with its cross-reference table.
pub(crate) struct Sample {
    objects: Vec<Vec<u8>>,
    trailer: &'static str,
}

pub(crate) fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn stream(more: &str, content: &[u8]) -> Vec<u8> {
    let packed = packed(content);
    let mut object = format!("<< {more} /Filter /FlateDecode /Length {} >>\nstream\n", packed.len()).into_bytes();
    object.extend(packed);
    object.extend(b"\nendstream");
    object
}

impl Sample {
    /// Pages with this content and one Latin font.
    fn of(pages: &[&[u8]], more: &[Vec<u8>], resources: &str) -> Sample {
        let kids: String = (0..pages.len()).map(|index| format!("{} 0 R ", 5 + 2 * index)).collect();
        let mut objects = vec![
            b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
            format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()).into_bytes(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
            b"<< /Title (Report on the harbour) /Author (A. Writer) /CreationDate (D:20260304073000Z) >>".to_vec(),
        ];
        for (index, content) in pages.iter().enumerate() {
            objects.push(
                format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> {resources} >> >>", 6 + 2 * index).into_bytes(),
            );
            objects.push(stream("", content));
        }
        objects.extend_from_slice(more);
        Sample { objects, trailer: "" }
    }

    /// One page, whose own font is F1, with more entries in its resources, itself and the catalogue. More objects begin
    /// with number 7; an object that ends in a stream is its dictionary's entries, `stream` and the content.
    pub(crate) fn page(content: &[u8], resources: &str, page: &str, catalogue: &str, more: &[&str]) -> Sample {
        let more: Vec<Vec<u8>> = more
            .iter()
            .map(|object| match object.split_once("stream ") {
                Some((entries, content)) => stream(entries, content.as_bytes()),
                None => object.as_bytes().to_vec(),
            })
            .collect();
        let mut sample = Sample::of(&[content], &more, "");
        sample.objects[0] = format!("<< /Type /Catalog /Pages 2 0 R {catalogue} >>").into_bytes();
        let boxed = if page.contains("/MediaBox") { "" } else { "/MediaBox [0 0 612 792]" };
        let fonts = if resources.contains("/Font") { "" } else { "/Font << /F1 3 0 R >>" };
        sample.objects[4] = format!(
            "<< /Type /Page /Parent 2 0 R {boxed} /Contents 6 0 R /Resources << {fonts} {resources} >> {page} >>"
        )
        .into_bytes();
        sample.objects[3] = b"<< >>".to_vec();
        sample
    }

    pub(crate) fn report() -> Sample {
        let first = b"BT /F1 12 Tf 72 700 Td (The harbour was dredged in March and is eleven) Tj 0 -14 Td [(metres) -300 (deep ag) 20 (ain.)] TJ \
                      0 -40 Td (A second paragraph says that the quay wall holds.) Tj ET";
        let second =
            b"BT /F1 12 Tf 72 700 Td (\xdcber den Kai \x96 \x93quoted\x94 and hyphen-) Tj 0 -14 Td (ated.) Tj ET";
        Sample::of(&[first, second], &[], "")
    }

    pub(crate) fn with_hidden() -> Sample {
        let content = b"BT /F1 12 Tf 72 700 Td (Seen by everybody) Tj ET BT 3 Tr /F1 12 Tf 72 650 Td (drawn by no pen) Tj ET \
                        BT 0 Tr 1 1 1 rg /F1 12 Tf 72 600 Td (white on white) Tj ET BT 0 g /F1 0.5 Tf 72 580 Td (too small) Tj ET \
                        0 g 60 500 300 50 re f BT 1 1 1 rg /F1 12 Tf 72 520 Td (White on black) Tj ET";
        Sample::of(&[content], &[], "")
    }

    pub(crate) fn with_markup() -> Sample {
        let content = b"BT /F1 12 Tf 72 700 Td (Depth < 3 and <script>alert\\(2\\)</script> <!-- x -->) Tj ET";
        let mut sample = Sample::of(&[content], &[], "");
        sample.objects[3] = b"<< /Title (<img src=x onerror=alert\\(1\\)> [a]\\(javascript:b\\)) >>".to_vec();
        sample
    }

    pub(crate) fn picture() -> Sample {
        let image = stream(
            "/Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8",
            &[0; 4],
        );
        Sample::of(&[b"q 600 0 0 700 0 0 cm /I Do Q"], &[image], "/XObject << /I 7 0 R >>")
    }

    pub(crate) fn encrypted() -> Sample {
        let mut sample = Sample::report();
        sample.trailer = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (01234567890123456789012345678901) /U (01234567890123456789012345678901) >> /ID [(0123456789abcdef) (0123456789abcdef)]";
        sample
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut places = Vec::new();
        for (index, object) in self.objects.iter().enumerate() {
            places.push(out.len());
            out.extend(format!("{} 0 obj\n", index + 1).bytes());
            out.extend(object);
            out.extend(b"\nendobj\n");
        }
        let start = out.len();
        out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
        for place in &places {
            out.extend(format!("{place:010} 00000 n \n").bytes());
        }
        let size = places.len() + 1;
        out.extend(
            format!(
                "trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R {} >>\nstartxref\n{start}\n%%EOF\n",
                self.trailer
            )
            .bytes(),
        );
        out
    }
}

/// Files made to exhaust or crash a reader.
pub(crate) fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let text = |content: &[u8]| Sample::of(&[content], &[], "").bytes();
    let itself = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 7 0 R >> >>",
        &b"/X Do ".repeat(50),
    );
    let kids = {
        let mut sample = Sample::report();
        sample.objects[1] = b"<< /Type /Pages /Kids [2 0 R 2 0 R 5 0 R] /Count 3 >>".to_vec();
        sample.bytes()
    };
    let many_pages = {
        let mut sample = Sample::report();
        sample.objects[1] =
            format!("<< /Type /Pages /Kids [{}] /Count 100000 >>", "5 0 R ".repeat(100_000)).into_bytes();
        sample.bytes()
    };
    let objects_bomb = {
        let mut sample = Sample::report();
        for _ in 0..40 {
            sample.objects.push(stream("/Type /ObjStm /N 1000000 /First 8", &vec![b' '; 60_000_000]));
        }
        sample.bytes()
    };
    let all_codes = Sample::page(
        &b"BT /F2 9 Tf (abcd) Tj ET ".repeat(1_000),
        "/Font << /F2 7 0 R >>",
        "",
        "",
        &[
            "<< /Type /Font /Subtype /Type0 /Encoding 8 0 R /ToUnicode 8 0 R /DescendantFonts [7 0 R] >>",
            "/CMapName /X stream begincodespacerange <00000000> <ffffffff> endcodespacerange beginbfrange <00000000> <ffffffff> <0041> endbfrange",
        ],
    );
    let conditions = Sample::page(
        &b"/OC /L BDC EMC ".repeat(100_000),
        "/Properties << /L 7 0 R >>",
        "",
        "/OCProperties << /D << >> >>",
        &["<< /Type /OCMD /VE [/And 8 0 R 8 0 R] /OCGs 7 0 R >>", "[/Or 8 0 R 8 0 R 7 0 R]"],
    );
    let notes = Sample::page(
        b"",
        "",
        &format!("/Annots [{}]", "7 0 R ".repeat(50_000)),
        "",
        &[
            "<< /Subtype /FreeText /Rect [0 0 99 99] /AP << /N 8 0 R >> >>",
            &format!("/Subtype /Form /BBox [0 0 9 9] stream {}", "q 0 0 9 9 re f Q ".repeat(100_000)),
        ],
    );
    let crowded = Sample::page(
        &b"BT /F1 9 Tf 99 99 Td (x) Tj ET ".repeat(100_000),
        "",
        &format!("/Annots [{}]", "7 0 R ".repeat(50_000)),
        "",
        &["<< /Subtype /FreeText /Rect [0 0 99 99] /Contents (note) >>"],
    );
    let mut below = b"BT /F1 9 Tf 99 99 Td ".to_vec();
    below.extend(b"(x)Tj ".repeat(500_000));
    below.extend(b"ET ");
    below.extend(b"0 0 50 50 re f ".repeat(1_000));
    vec![
        ("letters and later boxes", text(&below)),
        ("many notes in a crowd", crowded.bytes()),
        ("a table of all codes", all_codes.bytes()),
        ("conditions within themselves", conditions.bytes()),
        ("fifty thousand notes", notes.bytes()),
        ("grounds and letters", text(&b"0 0 99 99 re f BT /F1 9 Tf 700 700 Td (x) Tj ET ".repeat(100_000))),
        ("a page that unpacks to 200 MB", text(&vec![b' '; 200_000_000])),
        ("text without end", text(&b"BT /F1 12 Tf (all work and no play) Tj ET ".repeat(200_000))),
        ("states saved without end", text(&b"q ".repeat(2_000_000))),
        ("a form that paints itself", Sample::of(&[b"/X Do"], &[itself], "/XObject << /X 7 0 R >>").bytes()),
        ("pages within themselves", kids),
        ("a hundred thousand pages", many_pages),
        ("bombs of objects", objects_bomb),
        ("deep arrays", text(&b"[".repeat(1_000_000))),
        ("deep dictionaries", format!("%PDF-1.7\n1 0 obj\n{}\nendobj\ntrailer << /Root 1 0 R >>", "<< /A ".repeat(500_000)).into_bytes()),
        ("a table that points at itself", b"%PDF-1.7\nxref\n0 1\ntrailer\n<< /Size 1 /Prev 9 /Root 1 0 R >>\nstartxref\n9\n%%EOF".to_vec()),
        ("numbers of any size", text(b"BT /F1 99999999999999999999 Tf 1e38 1e38 1e38 1e38 1e38 1e38 Tm 9e99 -9e99 Td (x) Tj [(a) -99999999999999 (b)] TJ ET")),
        ("nothing but noise", (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
    ]
}
