// Measures a page. The members are those of `Measured` in checks.rs.
(() => {
  const found = { clipped: [], skipped: [], unnamed: [], small: [], contrast: [], lost: [] };
  const say = (node) => (node.textContent || node.tagName).trim().replace(/\s+/g, ' ').slice(0, 60);
  const note = (list, text) => { if (list.length < 10) list.push(text); };
  const shown = (node) => {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    // What stands outside the window is for screen readers, such as a link past the navigation.
    return box.width > 1 && box.height > 1 && box.right > 0 && box.bottom + scrollY > 0
      && style.visibility !== 'hidden' && style.opacity !== '0';
  };
  const root = document.documentElement;
  found.overflow = Math.max(0, Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth);

  // Colours, as the browser computes them, through a canvas: it knows every notation.
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const kept = new Map();
  const rgba = (color) => {
    if (!kept.has(color)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      kept.set(color, [r, g, b, a / 255]);
    }
    return kept.get(color);
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => {
    const of = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * of(r) + 0.7152 * of(g) + 0.0722 * of(b);
  };
  const ratio = (one, two) => {
    const [high, low] = [light(one), light(two)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    const dark = matchMedia('(prefers-color-scheme: dark)').matches && getComputedStyle(root).colorScheme.includes('dark');
    return layers.reverse().reduce((under, top) => over(top, under), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };

  found.smallest = 1000;
  found.measure = 0;
  found.letters = document.body.innerText.replace(/\s/g, '').length;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(node) || !shown(node)) continue;
    if (['SCRIPT', 'STYLE', 'TITLE', 'OPTION'].includes(node.tagName) || node.closest('svg')) continue;
    seen.add(node);
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    found.smallest = Math.min(found.smallest, size);
    const back = ground(node);
    const value = ratio(over(rgba(style.color), back), back);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    if (value < (large ? 3 : 4.5)) note(found.contrast, [say(node), value, large]);
    if (['hidden', 'clip'].includes(style.overflowX) && node.scrollWidth > node.clientWidth + 1 && style.display !== 'inline') {
      note(found.clipped, say(node));
    }
    if (node.tagName === 'P') {
      // The characters of a line: all of them by the lines that the text takes.
      const range = document.createRange();
      range.selectNodeContents(node);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top / 4))).size;
      if (lines > 2) found.measure = Math.max(found.measure, node.innerText.length / (lines - 0.5));
    }
  }

  const headings = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')];
  found.h1 = headings.filter((node) => node.tagName === 'H1').length;
  let before = 0;
  for (const node of headings) {
    const level = Number(node.tagName[1]);
    if (level > before + 1) note(found.skipped, say(node));
    before = level;
  }
  for (const node of document.querySelectorAll('img:not([alt])')) note(found.unnamed, node.outerHTML.slice(0, 60));
  for (const node of document.querySelectorAll('input:not([type=hidden]),textarea,select')) {
    if (!(node.labels && node.labels.length) && !node.getAttribute('aria-label')) note(found.unnamed, node.name || node.tagName);
  }
  for (const node of document.querySelectorAll('a[href],button')) {
    const name = node.textContent.trim() || node.getAttribute('aria-label') || (node.querySelector('img[alt]') || {}).alt || '';
    if (!name) note(found.unnamed, node.outerHTML.slice(0, 60));
    const box = node.getBoundingClientRect();
    // Links in a line of text may be as low as the line.
    const inLine = node.tagName === 'A' && node.closest('p,li,dd,td,address') && getComputedStyle(node).display === 'inline';
    if (shown(node) && !inLine && (box.width < 24 || box.height < 24)) note(found.small, say(node));
    const to = node.getAttribute('href') || '';
    if (to.startsWith('#') && to.length > 1 && !document.getElementById(decodeURIComponent(to.slice(1)))) note(found.lost, to);
  }
  found.has_language = !!root.lang;
  found.has_title = document.title.trim().length > 0;
  found.has_description = !!(document.querySelector('meta[name=description]') || {}).content;
  found.landmarks = document.querySelectorAll('header,nav,main,footer,aside').length;
  return found;
})()
