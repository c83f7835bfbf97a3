// Reads {"url", "html", "charset"} a line (the HTML as base64), writes the text that Readability makes of it.
const { JSDOM, VirtualConsole } = require("jsdom");
const { Readability } = require("@mozilla/readability");

for (const line of require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const page = JSON.parse(line);
  const dom = new JSDOM(Buffer.from(page.html, "base64"), { url: page.url, contentType: page.type, virtualConsole: new VirtualConsole() });
  const article = new Readability(dom.window.document).parse();
  // Blocks end words, as they do for a reader.
  const text = article ? article.content.replace(/<\/?(p|div|li|tr|td|th|h\d|br|pre|blockquote|section|dd|dt)\b[^>]*>/g, " $&") : "";
  console.log(JSON.stringify({ url: page.url, text: text ? new JSDOM(text).window.document.body.textContent : "" }));
}
