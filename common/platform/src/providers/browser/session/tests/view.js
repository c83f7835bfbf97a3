// A small stand-in for the page script.
(() => {
  const ids = new WeakMap(), known = new Map();
  const idOf = (e) => {
    if (!ids.has(e)) { ids.set(e, 'e' + (known.size + 1)); known.set(ids.get(e), e); }
    return ids.get(e);
  };
  const box = (e) => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round); };
  const USABLE = 'a, button, input, textarea, select, iframe, [contenteditable], [draggable]';
  globalThis.agoraView = {
    snapshot: (listeners) => ({
      url: location.href, title: document.title, width: innerWidth, height: innerHeight,
      scroll: { x: scrollX, y: scrollY, max_x: 0, max_y: 0 },
      nodes: [...document.querySelectorAll('body *')]
        .filter((e) => e.matches(USABLE) || listeners.includes(e) || (!e.children.length && e.textContent.trim()))
        .map((e) => e.matches(USABLE) || listeners.includes(e)
          ? { id: idOf(e), name: e.id || e.textContent.trim(), frame: e.tagName === 'IFRAME',
              value: e.value, box: box(e) }
          : { text: e.textContent.trim(), box: box(e) }),
    }),
    point: (id) => {
      const e = known.get(id);
      if (!e?.isConnected) return { gone: true };
      const fits = (r) => r.top >= 0 && r.bottom <= innerHeight;
      if (!fits(e.getBoundingClientRect())) e.scrollIntoView({ block: 'center', behavior: 'instant' });
      const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
      const hit = document.elementFromPoint(x, y);
      return !hit || e.contains(hit) ? { x, y } : { x, y, covered: ids.get(hit) || hit.tagName };
    },
    focus: (id) => { known.get(id).focus(); return { ok: true }; },
    set: (id, value) => { known.get(id).value = value; return { ok: true }; },
    files: (id, list) => {
      const data = new DataTransfer();
      for (const { name, type, base64 } of list) {
        data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type }));
      }
      known.get(id).files = data.files;
      return { ok: true };
    },
    text: () => ({ ok: true, text: document.body.innerText }),
    element: (id) => known.get(id) || null,
    refuse: () => ({ error: 'it is disabled' }),
  };
})();
