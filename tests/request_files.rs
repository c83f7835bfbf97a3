//! The files that a tool's work has made, at its request.

use base::ids::RequestId;
use gate::jobs::store;
use local::Options;
use platform::store::Write;
use serde_json::json;
use tools::files::{self, FileRow};
use tools::{Output, Runner, Source};
use tools_web::web_read;

use crate::support::{Payer, READ_PATH, run, stack_with};

static AT_ONCE: [&Runner; 1] = [&Runner {
    spec: &web_read::SPEC,
    run: |_, _| Box::pin(async { Ok(Output::new(json!({"read": true}), Source::embedded("test"))) }),
}];

/// A tool's files are its buyer's, at the request, once the job is completed. Others and the seller's routes have none.
#[test]
fn the_files_of_a_completed_job_are_its_buyers() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&AT_ONCE), ..options }).await;
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await.json();
        let id: RequestId = accepted["request_id"].as_str().unwrap().parse().unwrap();
        payer.finished(&id.to_string()).await;
        let (db, blobs, now) = (&stack.app.db, &*stack.app.blobs, stack.app.clock.now());
        let job = store::load_latest(db, id).await.unwrap().unwrap();
        for (path, bytes) in [("site/index.html", &b"<p>hello"[..]), ("notes.txt", b"0123456789")] {
            let row = FileRow::of(path, "text/html", bytes.len() as u64, now);
            let there = Write::check(&db.tables.jobs, job.key()).only_if("attribute_exists(#pk)");
            files::keep(db, blobs, job.files(), there, row, Some(bytes.to_vec())).await.unwrap().unwrap();
        }
        let folder = format!("/v1/requests/{id}/files");
        let read = async |by: &Payer, path: &str, more: &[(&str, &str)]| {
            let proof = by.proof("read");
            let headers = [&[("x-agent-proof", proof.as_str())], more].concat();
            by.client.get(path, &headers).await
        };
        let listed = read(&payer, &folder, &[]).await.json();
        assert_eq!(listed["file_count"], 2, "{listed}");
        let page = listed["files"][1].clone();
        assert_eq!((&page["path"], &page["size"]), (&json!("site/index.html"), &json!(8)));
        let got = read(&payer, page["download_url"].as_str().unwrap(), &[]).await;
        assert_eq!((got.status, got.text.as_str()), (200, "<p>hello"));
        // It cannot run here.
        assert_eq!(got.header("content-security-policy"), Some("default-src 'none'; sandbox"));
        assert!(got.header("content-disposition").unwrap().starts_with("attachment"));
        let part = read(&payer, &format!("{folder}/notes.txt"), &[("range", "bytes=2-4")]).await;
        assert_eq!((part.status, part.text.as_str()), (206, "234"));
        assert_eq!(read(&payer, &format!("{folder}/../notes.txt"), &[]).await.status, 404);
        let other = Payer::new(&stack).await;
        for path in [folder.clone(), format!("{folder}/notes.txt")] {
            assert_eq!(read(&other, &path, &[]).await.status, 404, "{path}");
            assert_eq!(payer.client.get(&path, &[("x-agent-id", &payer.address().to_string())]).await.status, 401);
        }
        // Fetches are counted by what the call cost.
        let big = vec![b'x'; 2 * 1024 * 1024 - 64];
        let row = FileRow::of("notes.txt", "text/plain", big.len() as u64, now);
        let there = Write::check(&db.tables.jobs, job.key()).only_if("attribute_exists(#pk)");
        files::keep(db, blobs, job.files(), there, row, Some(big)).await.unwrap().unwrap();
        let mut last = 200;
        for _ in 0..6 {
            last = read(&payer, &format!("{folder}/notes.txt"), &[]).await.status;
        }
        assert_eq!(last, 403, "a price of 0.002 pays for ten MiB of downloads");
    });
}
