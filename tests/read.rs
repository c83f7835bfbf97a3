//! Web read over the test sites: pages, PDF files and feeds are bought and read, robots.txt is respected, and what
//! cannot be read is paid back with a reason.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::{Value, json};
use sites::score::score;
use sites::{PageKind, pages};
use tokio::net::TcpListener;

use crate::support::{Payer, READ_PATH, run, stack_with};

/// A small PDF file: one page with a sentence.
fn pdf() -> Vec<u8> {
    let content = "BT /F1 12 Tf 72 700 Td (The tide mill grinds at three in the morning.) Tj ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 6\n{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
    file.into_bytes()
}

async fn serve(router: Router) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), address.to_string())
}

async fn bought(payer: &Payer, url: &str) -> Value {
    let accepted = payer.buy(READ_PATH, &json!({"url": url})).await.json();
    let id = accepted["request_id"].as_str().unwrap_or_else(|| panic!("{url}: {accepted}"));
    payer.finished(id).await
}

#[test]
fn readable_documents_are_sold_and_unreadable_ones_paid_back() {
    run(async {
        let files = Router::new()
            .route("/files/tides.pdf", get(|| async { ([(CONTENT_TYPE, "application/pdf")], pdf()) }))
            .route(
                "/files/broken.pdf",
                get(|| async { ([(CONTENT_TYPE, "application/pdf")], &b"%PDF-1.7 and no more"[..]) }),
            );
        let (origin, address) = serve(files.fallback_service(sites::router())).await;
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", address)).await;
        let payer = Payer::new(&stack).await;

        let one_of = |kind: PageKind| pages().iter().find(|page| page.kind == kind).expect("a page");
        for kind in
            [PageKind::News, PageKind::Forum, PageKind::Product, PageKind::Wiki, PageKind::Tongue, PageKind::Hostile]
        {
            let page = one_of(kind);
            let job = bought(&payer, &page.local_url(&origin)).await;
            assert_eq!((&job["status"], &job["mode"]), (&json!("completed"), &json!("embedded")), "{job}");
            let markdown = job["result"]["markdown"].as_str().unwrap();
            assert!(score(markdown, &page.truth).f1 > 0.7, "{}: {markdown}", page.url());
            for hidden in page.truth.boilerplate.iter().filter(|_| kind == PageKind::Hostile) {
                assert!(!markdown.contains(hidden), "{markdown}");
            }
        }

        let feed = one_of(PageKind::Feed);
        let job = bought(&payer, &feed.local_url(&origin)).await;
        let markdown = job["result"]["markdown"].as_str().unwrap();
        for title in &feed.truth.main_text {
            assert!(markdown.contains(&format!("- [{title}](http")), "{title}: {markdown}");
        }
        let file = bought(&payer, &format!("{origin}/files/tides.pdf")).await;
        assert_eq!(file["result"]["markdown"], "The tide mill grinds at three in the morning.", "{file}");

        for (path, reason, words) in [
            ("/odd.example/private/secret", "source_unavailable", "robots.txt"),
            ("/odd.example/app-react", "needs_browser", "scripts"),
            ("/files/broken.pdf", "source_unavailable", "application/pdf (damaged)"),
        ] {
            let job = bought(&payer, &format!("{origin}{path}")).await;
            assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!(reason)), "{job}");
            assert_eq!(job["credited_usdc"], "0.002000", "{job}");
            assert!(
                job["error"].to_string().contains(words) || job["error_message"].to_string().contains(words),
                "{job}"
            );
        }
    });
}
