//! What a person does on a site.

use super::*;

fn shop(asked: &Asked) -> Answer {
    let cookies = asked.headers.get("cookie").cloned().unwrap_or_default();
    let to = |place: &str, cookie: &str| {
        (302, vec![("location", place.to_owned()), ("set-cookie", cookie.to_owned())], String::new())
    };
    match asked.line.as_str() {
        "GET /login" => html("<form method=post action=/login><input id=user name=user><button>Go</button></form>"),
        "POST /login" => to("/check", "step=1; Path=/; Max-Age=3600; SameSite=Strict"),
        "GET /check" if cookies.contains("step=1") => to("/home?x=1#top", "key=secret; HttpOnly; SameSite=Lax"),
        "GET /home?x=1" => html(&format!(
            "<p>in with {cookies}</p><script>localStorage.mark = 'kept'; document.write(document.cookie)</script>"
        )),
        "GET /again" => html(&format!("<p>{cookies}</p><script>document.write(localStorage.mark)</script>")),
        _ => nothing(),
    }
}

#[tokio::test]
async fn a_login_keeps_its_cookies_at_each_step_and_for_a_later_session() {
    let site = Site::start("127.0.0.1", shop).await;
    let Some(session) = start(&[&site], None).await else { return };
    session.goto(&site.url("/login")).await.unwrap();
    let user = id(&session, "user").await;
    session.call(Some(&user), "focus", Vec::new()).await.unwrap();
    session.type_text("Ida Ü").await.unwrap();
    click(&session, "Go").await;
    assert_eq!(url(&session).await, site.url("/home?x=1#top"));
    assert_eq!(text(&session).await, "in with step=1; key=secret\n\nstep=1");
    let expected = ["GET /login", "POST /login", "GET /check", "GET /home?x=1"];
    assert_eq!(site.lines(), expected);
    let posted = site.last("POST /login");
    assert_eq!(posted.body, b"user=Ida+%C3%9C");
    assert_eq!(posted.headers["user-agent"], AGENT);
    assert_eq!(posted.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(session.refused(), [""; 0]);

    let state = session.state().await.unwrap();
    session.close().await;
    let kept = serde_json::to_string(&state).unwrap();
    assert!(kept.contains("secret") && kept.contains(r#""mark":"kept""#), "{kept}");
    let later = start(&[&site], serde_json::from_str(&kept).unwrap()).await.unwrap();
    later.goto(&site.url("/again")).await.unwrap();
    let shown = text(&later).await;
    assert!(shown.contains("step=1") && shown.contains("key=secret") && shown.contains("kept"), "{shown}");
    // A session has nothing of another.
    let other = start(&[&site], None).await.unwrap();
    other.goto(&site.url("/again")).await.unwrap();
    assert_eq!(text(&other).await.trim(), "undefined");
    later.back().await.unwrap_err();
}

fn desk(asked: &Asked) -> Answer {
    match asked.line.as_str() {
        "GET /desk" => html(
            "<div id=note contenteditable style='width:300px;height:30px'></div>
             <p id=twice>twice</p><p id=log></p><div style='height:3000px'></div>
             <div id=card draggable=true style='width:80px;height:30px'>card</div>
             <div id=bin style='width:200px;height:60px'>bin</div>
             <form method=post action=/files enctype=multipart/form-data><input id=file name=f type=file>
             <button>Send</button></form><script>
             const say = (what) => log.textContent += what + ' ';
             twice.ondblclick = () => say('double'); twice.oncontextmenu = () => say('right');
             twice.onmouseover = () => say('over');
             card.ondragstart = (e) => e.dataTransfer.setData('text/plain', 'ace');
             bin.ondragover = (e) => e.preventDefault();
             bin.ondrop = (e) => { e.preventDefault(); say('dropped-' + e.dataTransfer.getData('text/plain')); };
             note.onkeydown = (e) => { if (e.key.length > 1) say(e.key); };
             </script>",
        ),
        "POST /files" => html("<p>thanks</p>"),
        _ => nothing(),
    }
}

#[tokio::test]
async fn mouse_keyboard_and_files_work_as_a_persons() {
    let site = Site::start("127.0.0.1", desk).await;
    let Some(session) = start(&[&site], None).await else { return };
    session.goto(&site.url("/desk")).await.unwrap();
    // Elements that only a listener makes usable are found.
    let twice = id(&session, "twice").await;
    session.hover(At::Element(&twice)).await.unwrap();
    session.click(At::Element(&twice), Click { count: 2, ..Click::default() }).await.unwrap();
    session.click(At::Element(&twice), Click { button: "right", count: 1 }).await.unwrap();
    click(&session, "note").await;
    session.type_text("Grüße, Ida!").await.unwrap();
    session.press("Backspace").await.unwrap();
    session.press("Shift+x").await.unwrap();
    assert!(text(&session).await.starts_with("Grüße, IdaX\n"), "{}", text(&session).await);
    session.press("Control+A").await.unwrap();
    session.type_text("new").await.unwrap();
    let (card, bin) = (id(&session, "card").await, id(&session, "bin").await);
    session.drag(At::Element(&card), At::Element(&bin)).await.unwrap();
    let shown = text(&session).await;
    assert!(shown.starts_with("new\n"), "{shown}");
    for said in ["over", "double", "right", "Backspace", "Control", "dropped-ace"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(matches!(session.press("Control+V").await, Err(ActError::Refused(_))));
    assert!(matches!(session.press("Nokey").await, Err(ActError::Refused(_))));

    let file = id(&session, "file").await;
    let bytes: Vec<u8> = (0..=255).collect();
    let upload = json!([{"name": "all.bin", "type": "a/b", "base64": base::encoding::base64_standard(&bytes)}]);
    session.call(Some(&file), "files", vec![upload]).await.unwrap();
    click(&session, "Send").await;
    assert_eq!(text(&session).await, "thanks");
    let body = site.last("POST /files").body;
    assert!(body.windows(bytes.len()).any(|part| part == bytes), "the file arrives whole");
    let error = session.call(None, "refuse", Vec::new()).await.unwrap_err();
    assert_eq!(error, ActError::Refused("it is disabled".to_owned()));
    session.back().await.unwrap();
    assert_eq!(url(&session).await, site.url("/desk"));
}

#[tokio::test]
async fn frames_tabs_dialogs_and_downloads_are_seen_and_used() {
    let inner = Site::start("localhost", |asked: &Asked| match asked.line.as_str() {
        "GET /frame" => html(
            "<title>inner</title><input id=field>
             <button onclick=\"this.textContent = 'sent ' + field.value\">ok</button>",
        ),
        _ => nothing(),
    })
    .await;
    let frame = inner.url("/frame");
    let site = Site::start("127.0.0.1", move |asked: &Asked| match asked.line.as_str() {
        "GET /" => html(&format!(
            "<div style='height:2000px'></div>
             <iframe src={frame} style='margin:20px;border:5px solid;width:400px'></iframe>
             <iframe srcdoc='<button>near</button>'></iframe>
             <a href=/tab target=_blank>tab</a><a href=/file>file</a><a href=/tab download=mine.txt>save</a>
             <button onclick=\"make()\">make</button>
             <script>function make() {{ const a = document.createElement('a'); a.download = 'made.csv';
             a.href = URL.createObjectURL(new Blob(['1,2'], {{type: 'text/csv'}})); a.click();
             URL.revokeObjectURL(a.href); }}</script>
             <button onclick=\"this.textContent = prompt('Who?', 'x')\">ask</button>
             <button onclick=\"window.open('/tab').document.title\">open</button>"
        )),
        "GET /tab" => html("<title>second</title><p>in a tab</p><button onclick='window.close()'>shut</button>"),
        "GET /file" => (200, vec![("content-type", "application/pdf".to_owned())], "%PDF".to_owned()),
        _ => nothing(),
    })
    .await;
    let Some(session) = start(&[&site, &inner], None).await else { return };
    session.goto(&site.url("/")).await.unwrap();
    // A frame of another host, in another process; its element is far below.
    let field = id(&session, "field").await;
    assert!(field.starts_with("f1."), "{field}");
    session.click(At::Element(&field), Click::default()).await.unwrap();
    session.type_text("framed").await.unwrap();
    click(&session, "ok").await;
    let view = session.view().await.unwrap();
    let nodes = view["nodes"].as_array().unwrap();
    let at = nodes.iter().position(|node| node["name"] == "sent framed").unwrap_or_else(|| panic!("{view:#}"));
    let outer = nodes.iter().find(|node| node["frame"] == true).unwrap();
    let corner = |node: &Value| (node["box"][0].as_f64().unwrap(), node["box"][1].as_f64().unwrap());
    let (inside, outside) = (corner(&nodes[at]), corner(outer));
    assert!(inside.0 > outside.0 + 5.0 && inside.1 > outside.1 + 5.0, "{view:#}");
    assert!(nodes.iter().any(|node| node["name"] == "near"), "{view:#}");

    click(&session, "tab").await;
    let view = session.view().await.unwrap();
    let tabs = view["tabs"].as_array().unwrap();
    assert_eq!((tabs.len(), &tabs[1]["title"], &tabs[1]["current"]), (2, &json!("second"), &json!(true)));
    session.tab(1).await.unwrap();
    assert_eq!(url(&session).await, site.url("/"));
    session.tab(2).await.unwrap();
    session.close_tab().await.unwrap();
    session.close_tab().await.unwrap_err();
    click(&session, "open").await;
    click(&session, "shut").await;
    assert_eq!(session.view().await.unwrap()["tabs"].as_array().unwrap().len(), 1);

    click(&session, "ask").await;
    let view = session.view().await.unwrap();
    assert_eq!(view["dialog"], json!({"kind": "prompt", "message": "Who?", "default": "x"}));
    assert_eq!((&view["url"], &view["nodes"]), (&json!(site.url("/")), &json!([])));
    assert_eq!(session.screenshot().await, Err(ActError::Refused(DIALOG_OPEN.to_owned())));
    session.dialog(true, Some("Ida")).await.unwrap();
    id(&session, "Ida").await;
    assert!(session.screenshot().await.unwrap().starts_with(b"\x89PNG"));

    click(&session, "file").await;
    click(&session, "save").await;
    click(&session, "make").await;
    assert_eq!(session.view().await.unwrap()["downloads"], json!(["file", "mine.txt", "made.csv"]));
    let files = session.take_downloads();
    assert_eq!((files[0].bytes.as_slice(), files[0].content_type.as_str()), (&b"%PDF"[..], "application/pdf"));
    assert!(files[1].bytes.starts_with(b"<!doctype"));
    assert_eq!((files[2].bytes.as_slice(), files[2].content_type.as_str()), (&b"1,2"[..], "text/csv"));
    assert_eq!(url(&session).await, site.url("/"));
    session.goto(&site.url("/file")).await.unwrap();
    assert_eq!((session.take_downloads().len(), session.refused()), (1, Vec::new()));
}

#[tokio::test]
async fn a_crash_is_told_from_a_refused_act() {
    let site = Site::start("127.0.0.1", |_: &Asked| html("<p>page</p>")).await;
    let Some(session) = start(&[&site], None).await else { return };
    session.goto(&site.url("/")).await.unwrap();
    assert!(matches!(session.tab(5).await, Err(ActError::Refused(_))));
    assert!(matches!(session.click(At::Element("e99"), Click::default()).await, Err(ActError::Refused(_))));
    assert!(matches!(session.click(At::Element("f9.e1"), Click::default()).await, Err(ActError::Refused(_))));
    let tab = session.current().unwrap();
    let _ = session.send(Some(&tab.session), "Page.crash", json!({}));
    sleep(Duration::from_millis(500)).await;
    assert_eq!(session.view().await.unwrap_err(), ActError::Lost("the page crashed".to_owned()));
    assert!(matches!(session.goto(&site.url("/")).await, Err(ActError::Lost(_))));
}
