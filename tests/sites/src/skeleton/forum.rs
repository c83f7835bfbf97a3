//! Forums: four skeletons. The posts are the content; their authors, ranks and signatures are not.

use super::{Block, Doc, Extras, escape, related};

const RULES: &str = "Please read the rules of this board before you post for the first time.";
const SIGNATURE: &str = "Sent from a telephone that is smarter than its owner";

pub fn render(doc: &Doc, extras: &mut Extras) -> String {
    match doc.variant % 4 {
        0 => board(doc, extras),
        1 => talk(doc, extras),
        2 => answers(doc, extras),
        _ => nested(doc, extras),
    }
}

/// Every post, rendered from its author and paragraphs.
fn posts(doc: &Doc, template: impl Fn(usize, &str, &str) -> String) -> String {
    let posts = doc.blocks.iter().enumerate().filter_map(|(index, block)| match block {
        Block::Post { author, paras } => Some((index, author, paras)),
        _ => None,
    });
    posts
        .map(|(index, author, paras)| {
            let text: Vec<String> = paras.iter().map(|para| escape(para)).collect();
            template(index, author, &text.join("\u{1}"))
        })
        .collect()
}

/// Old board software, in tables of two columns.
fn board(doc: &Doc, extras: &mut Extras) -> String {
    let signature = extras.say(SIGNATURE);
    let posts = posts(doc, |index, author, text| {
        let text = text.replace('\u{1}', "<br /><br />");
        let row = if index % 2 == 0 { "bg1" } else { "bg2" };
        format!(
            "<div id=\"p{index}\" class=\"post has-profile {row}\"><div class=\"inner\"><dl class=\"postprofile\"><dt><a href=\"#\" class=\"username\">{author}</a></dt><dd class=\"profile-rank\">Senior member</dd>\
             <dd class=\"profile-posts\"><strong>Posts:</strong> <a href=\"#\">{}</a></dd><dd class=\"profile-joined\"><strong>Joined:</strong> Mon Mar 0{} 2018 8:15 pm</dd></dl>\
             <div class=\"postbody\"><h3><a href=\"#p{index}\">Re: {}</a></h3><ul class=\"post-buttons\"><li><a href=\"#\" title=\"Reply with quote\">Quote</a></li><li><a href=\"#\">Report this post</a></li></ul>\
             <div class=\"content\">{text}</div><div class=\"signature\">{signature}</div></div><div class=\"back2top\"><a href=\"#top\">Top</a></div></div></div><hr class=\"divider\" />\n",
            index * 311 + 12,
            index + 1,
            doc.title
        )
    });
    let similar = extras.links(&related(doc, 4), ("<li class=\"row\">", "</li>"));
    format!(
        "<!DOCTYPE html><html dir=\"ltr\" lang=\"en-gb\"><head><meta charset=\"utf-8\" /><title>{0} - Calderland Forum</title></head><body id=\"phpbb\" class=\"nojs section-viewtopic\"><div id=\"wrap\">\
         <div id=\"page-header\"><div class=\"headerbar\"><h1>Calderland Forum</h1><p>A place for everybody</p><p class=\"skiplink\"><a href=\"#start_here\">Skip to content</a></p></div>\
         <div class=\"navbar\"><ul id=\"nav-main\"><li><a href=\"#\">FAQ</a></li><li><a href=\"#\">Register</a></li><li><a href=\"#\">Login</a></li></ul><ul id=\"nav-breadcrumbs\"><li><a href=\"/\">Board index</a></li></ul></div></div>\
         <div id=\"page-body\"><div class=\"rules\">{1}</div><h2 class=\"topic-title\"><a href=\"#\">{0}</a></h2><div class=\"action-bar\"><a href=\"#\">Post Reply</a> <span class=\"pagination\">5 posts • Page 1 of 1</span></div>{posts}\
         <div class=\"panel\"><h3>Similar topics</h3><ul>{similar}</ul></div><div class=\"stat-block online-list\"><h3>Who is online</h3><p>{2}</p></div></div>\
         <div id=\"page-footer\"><p class=\"footer-row\">Powered by Board Software</p></div></div></body></html>",
        doc.title,
        extras.say(RULES),
        extras.say("Users browsing this forum: no registered users and 7 guests")
    )
}

/// A discussion app, in the form for crawlers.
fn talk(doc: &Doc, extras: &mut Extras) -> String {
    let posts = posts(doc, |index, author, text| {
        let text: String = text.split('\u{1}').map(|para| format!("<p>{para}</p>")).collect();
        format!(
            "<div id=\"post_{0}\" itemprop=\"comment\" itemscope itemtype=\"http://schema.org/Comment\" class=\"topic-body crawler-post\"><div class=\"crawler-post-meta\"><span class=\"creator\" itemprop=\"author\"><a href=\"#\"><span itemprop=\"name\">{author}</span></a></span>\
             <span class=\"crawler-post-infos\"><time class=\"post-time\">{0} May</time> <span itemprop=\"position\">{0}</span></span></div><div class=\"post\" itemprop=\"text\">{text}</div>\
             <div class=\"post-likes\">{0} Likes</div></div>",
            index + 1
        )
    });
    let topics =
        extras.links(&related(doc, 5), ("<tr class=\"topic-list-item\"><td>", "</td><td>12</td><td>June</td></tr>"));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} - Fells Talk</title></head><body class=\"crawler\"><noscript>For full functionality of this site it is necessary to enable JavaScript.</noscript>\
         <header><a href=\"/\">Fells Talk</a></header><div id=\"main-outlet\" class=\"wrap\" role=\"main\"><div id=\"topic-title\"><h1><a href=\"#\">{0}</a></h1><div class=\"topic-category\"><a href=\"#\">General</a></div></div>\
         <div itemscope itemtype=\"http://schema.org/DiscussionForumPosting\">{posts}</div><div id=\"related-topics\" class=\"more-topics__list\"><h3>Related topics</h3><table class=\"topic-list\">{topics}</table></div></div>\
         <footer class=\"container\"><nav><ul><li><a href=\"/\">Home</a></li><li><a href=\"/guidelines\">Guidelines</a></li></ul></nav><p>{1}</p></footer></body></html>",
        doc.title,
        extras.say("Powered by Discussion, best viewed with scripts enabled")
    )
}

/// Questions and answers with votes.
fn answers(doc: &Doc, extras: &mut Extras) -> String {
    let posts = posts(doc, |index, author, text| {
        let text: String = text.split('\u{1}').map(|para| format!("<p>{para}</p>")).collect();
        let class = if index == 0 { "question" } else { "answer" };
        format!(
            "<div class=\"{class}\" data-score=\"{0}\"><div class=\"votecell\"><button>▲</button><div class=\"js-vote-count\">{0}</div><button>▼</button></div><div class=\"postcell\"><div class=\"s-prose js-post-body\">{text}</div>\
             <div class=\"post-menu\"><a href=\"#\">Share</a> <a href=\"#\">Improve this answer</a> <a href=\"#\">Follow</a></div><div class=\"user-info\"><span>answered</span> {author} <span class=\"reputation-score\">{1}</span></div></div></div>",
            7 - index,
            index * 905 + 41
        )
    });
    let hot = extras.links(&related(doc, 6), ("<li>", "</li>"));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head><body class=\"question-page\"><header class=\"s-topbar\"><a href=\"/\">Fells Answers</a><form role=\"search\"><input></form></header>\
         <div class=\"container\"><div id=\"left-sidebar\"><nav role=\"navigation\"><ol><li><a href=\"/questions\">Questions</a></li><li><a href=\"/tags\">Tags</a></li></ol></nav></div>\
         <div id=\"content\"><div id=\"question-header\"><h1><a href=\"#\">{0}</a></h1></div><div id=\"mainbar\" role=\"main\">{posts}<div id=\"post-form\"><h2>Your answer</h2><p>{1}</p></div></div>\
         <div id=\"sidebar\" role=\"complementary\"><div class=\"module\"><h4>Hot questions</h4><ul>{hot}</ul></div></div></div></div><footer id=\"footer\">{2}</footer></body></html>",
        doc.title,
        extras.say("Thanks for contributing an answer. Please be sure to answer the question."),
        extras.say("Site design and logo © 2026; user contributions licensed freely.")
    )
}

/// Nested comments in one table, as on link aggregators.
fn nested(doc: &Doc, extras: &mut Extras) -> String {
    let posts = posts(doc, |index, author, text| {
        let text = text.replace('\u{1}', "<p>");
        format!(
            "<tr class=\"athing comtr\"><td><table border=\"0\"><tr><td class=\"ind\" indent=\"{0}\"><img src=\"s.gif\" height=\"1\" width=\"{1}\"></td><td class=\"default\"><div><span class=\"comhead\"><a href=\"#\" class=\"hnuser\">{author}</a> {0} hours ago | <a href=\"#\">parent</a> | <a href=\"#\">next</a></span></div>\
             <br><div class=\"comment\"><div class=\"commtext c00\">{text}</div><div class=\"reply\"><font size=\"1\"><u><a href=\"#\">reply</a></u></font></div></div></td></tr></table></td></tr>",
            index,
            index * 40
        )
    });
    format!(
        "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head><body><center><table id=\"hnmain\" border=\"0\" width=\"85%\"><tr><td bgcolor=\"#ff6600\"><a href=\"/\"><b>Fells News</b></a> <a href=\"/newest\">new</a> | <a href=\"/ask\">ask</a> | <a href=\"/jobs\">jobs</a></td></tr>\
         <tr><td><table class=\"fatitem\"><tr><td class=\"title\"><h1><a href=\"#\">{0}</a></h1></td></tr><tr><td class=\"subtext\">41 points by someone 6 hours ago | hide | past</td></tr></table><br>\
         <table class=\"comment-tree\">{posts}</table></td></tr><tr><td><span class=\"yclinks\"><a href=\"#\">Guidelines</a> | <a href=\"#\">Lists</a></span><br>{1}</td></tr></table></center></body></html>",
        doc.title,
        extras.say("Applications are open for the winter group until the end of the month")
    )
}
