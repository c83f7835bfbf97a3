// What a page shows and how to use it. The session evaluates this file in an isolated world of each frame: it shares
// the document with the page, but no variables, so a page cannot change what it does. Values of password fields stay
// here.
(() => {
  'use strict';
  if (globalThis.agoraView) return;

  const MAX_NODES = 5000;
  const MAX_DEPTH = 400;
  const MAX_NAME = 160;
  const MAX_TEXT = 2000;
  const MAX_OPTIONS = 400;

  const ids = new WeakMap();
  const known = new Map();
  let last = 0;

  const idOf = (element) => {
    let id = ids.get(element);
    if (!id) {
      id = 'e' + ++last;
      ids.set(element, id);
      known.set(id, new WeakRef(element));
    }
    return id;
  };

  const element = (id) => {
    const found = known.get(id)?.deref();
    return found && found.isConnected ? found : null;
  };

  const squeeze = (text, most = MAX_NAME) => {
    const plain = (text || '')
      .slice(0, most * 8)
      .replace(/\s+/g, ' ')
      .trim();
    return plain.length > most ? plain.slice(0, most - 1) + '…' : plain;
  };

  // ---- Roles ----

  const INPUT_ROLES = {
    button: 'button',
    submit: 'button',
    reset: 'button',
    image: 'button',
    checkbox: 'checkbox',
    radio: 'radio',
    range: 'slider',
    number: 'spinbutton',
    search: 'searchbox',
    file: 'file',
    color: 'color',
  };
  const TAG_ROLES = {
    BUTTON: 'button',
    SUMMARY: 'button',
    TEXTAREA: 'textbox',
    OPTION: 'option',
    IFRAME: 'frame',
    FRAME: 'frame',
    AREA: 'link',
    PROGRESS: 'progressbar',
    METER: 'meter',
    AUDIO: 'media',
    VIDEO: 'media',
    CANVAS: 'canvas',
  };
  // ARIA roles that a person can use.
  const USABLE = new Set(
    (
      'button link checkbox radio switch textbox searchbox combobox listbox option slider spinbutton tab ' +
      'menuitem menuitemcheckbox menuitemradio treeitem scrollbar gridcell'
    ).split(' '),
  );
  // Their name is what is written in them, and nothing in them is used by itself.
  const LEAVES = new Set(
    (
      'button link checkbox radio switch option tab menuitem menuitemcheckbox menuitemradio textbox searchbox ' +
      'spinbutton slider file color combobox listbox media canvas progressbar meter frame'
    ).split(' '),
  );
  const FIELDS = new Set(['textbox', 'searchbox', 'spinbutton', 'slider', 'combobox', 'listbox', 'file', 'color']);
  const SHAPES = new Set(['circle', 'ellipse', 'rect', 'polygon', 'path', 'line', 'polyline', 'text']);
  const STILL =
    'button, a[href], input, select, textarea, summary, [contenteditable=""], [contenteditable=true], iframe, ' +
    '[role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab], [role=menuitem], ' +
    '[role=option], ' +
    '[role=textbox], [role=combobox], [role=slider], [role=treeitem]';

  const editable = (e) => {
    const own = e.getAttribute('contenteditable');
    return own !== null && own.toLowerCase() !== 'false';
  };

  const roleOf = (e) => {
    const given = (e.getAttribute('role') || '').trim().split(/\s+/)[0].toLowerCase();
    const tag = e.tagName.toUpperCase();
    if (tag === 'INPUT') {
      if (e.type === 'hidden') return null;
      if (given === 'switch' || given === 'combobox') return given;
      const suggests =
        e.hasAttribute('aria-autocomplete') || /autocomplete|typeahead/.test(e.getAttribute('class') || '');
      if (suggests && /^(text|search|email|url|tel)$/.test(e.type)) return 'combobox';
      return INPUT_ROLES[e.type] || 'textbox';
    }
    if (tag === 'SELECT') return e.multiple || e.size > 1 ? 'listbox' : 'combobox';
    if (USABLE.has(given)) return given;
    if (tag === 'A') return e.hasAttribute('href') ? 'link' : null;
    if (/^H[1-6]$/.test(tag) || given === 'heading') return 'heading';
    if (tag === 'IMG' || given === 'img') return 'image';
    if (editable(e)) return 'textbox';
    return TAG_ROLES[tag] || null;
  };

  // ---- Names ----

  // Words that a person reads in it; else what its pictures are called.
  const content = (e) => {
    // `innerText` leaves out what is hidden, but is slow.
    const read = 'innerText' in e && e.childElementCount ? e.innerText : e.textContent;
    const text = squeeze(read);
    if (text) return text;
    const parts = [];
    for (const part of e.querySelectorAll ? e.querySelectorAll('img[alt], [aria-label], svg title') : []) {
      parts.push(part.getAttribute('alt') || part.getAttribute('aria-label') || part.textContent);
      if (parts.length > 5) break;
    }
    return squeeze(parts.join(' '));
  };

  const labelText = (label, control) => {
    // The words of the label without those of the fields in it.
    if (!label.contains(control) || !label.querySelector('select, textarea')) return content(label);
    const parts = [];
    const walk = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      if (!n.parentElement.closest('select, textarea')) parts.push(n.data);
    }
    return squeeze(parts.join(' '));
  };

  const nameOf = (e, role) => {
    const refs = e.getAttribute('aria-labelledby');
    if (refs) {
      const root = e.getRootNode();
      const texts = refs
        .split(/\s+/)
        .slice(0, 8)
        .map((ref) => {
          const other = ref && root.getElementById ? root.getElementById(ref) : null;
          return other ? squeeze(other.textContent) : '';
        });
      const name = squeeze(texts.filter(Boolean).join(' '));
      if (name) return name;
    }
    const label = squeeze(e.getAttribute('aria-label'));
    if (label) return label;
    if (e.labels && e.labels.length) {
      const name = squeeze(
        [...e.labels]
          .slice(0, 4)
          .map((l) => labelText(l, e))
          .join(' '),
      );
      if (name) return name;
    }
    const tag = e.tagName.toUpperCase();
    if (tag === 'INPUT' && role === 'button') {
      const plain = { submit: 'Submit', reset: 'Reset' }[e.type] || '';
      return squeeze(e.getAttribute('alt') || e.value || e.title || plain);
    }
    if (tag === 'IMG' || tag === 'AREA') return squeeze(e.alt || e.title);
    if (role && !FIELDS.has(role) && role !== 'frame') {
      const text = content(e);
      if (text) return text;
    }
    if (tag === 'TABLE' && e.caption) return content(e.caption);
    return squeeze(
      e.getAttribute('title') || e.getAttribute('placeholder') || (role === 'frame' ? e.getAttribute('name') : ''),
    );
  };

  // For an element without a name: words in its classes, its id or its picture's address.
  const DULL = new Set(
    (
      'fa fas far fab icon icons bi btn button ui glyphicon mdi link item material svg img image the ' +
      'col row container wrapper inner outer left right top bottom center'
    ).split(' '),
  );
  const hintOf = (e, deep) => {
    const parts = [];
    const take = (text) => {
      for (const word of String(text || '').split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/)) {
        const low = word.toLowerCase();
        if (low.length > 2 && low.length < 20 && !DULL.has(low) && !parts.includes(low)) parts.push(low);
      }
    };
    const inside = deep ? [...e.querySelectorAll('i, span, svg, use, img')].slice(0, 3) : [];
    for (const each of [e, ...inside]) {
      take(each.getAttribute('class'));
      take(each.getAttribute('data-icon'));
      if (each === e) take(e.id);
      const link = each.getAttribute('href') || each.getAttribute('xlink:href') || each.getAttribute('src') || '';
      if (each.tagName !== 'A' && !link.startsWith('data:'))
        take(
          link
            .split(/[#/]/)
            .pop()
            .replace(/\.\w+$/, ''),
        );
    }
    return parts.slice(0, 6).join(' ');
  };

  // ---- Looks ----

  const colourOf = (css) => {
    const m = /^rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+)(?:[,/ ]+([\d.]+))?\)/.exec(css || '');
    if (!m || (m[4] !== undefined && Number(m[4]) < 0.1)) return '';
    const [r, g, b] = [m[1], m[2], m[3]].map(Number);
    const max = Math.max(r, g, b);
    const min = Math.min(r, g, b);
    const spread = max - min;
    const depth = 255 - Math.abs(max + min - 255);
    if (spread < 10 || spread < 0.15 * depth) return max < 50 ? 'black' : min > 225 ? 'white' : 'grey';
    let hue = max === r ? (g - b) / spread : max === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
    hue = (hue * 60 + 360) % 360;
    if (hue < 12 || hue >= 346) return max > 230 && min > 150 ? 'pink' : 'red';
    if (hue < 42) return max < 170 ? 'brown' : 'orange';
    if (hue < 70) return max < 140 ? 'olive' : 'yellow';
    if (hue < 165) return 'green';
    if (hue < 195) return 'cyan';
    if (hue < 258) return 'blue';
    if (hue < 290) return 'purple';
    return min > 120 ? 'pink' : max < 160 ? 'purple' : 'magenta';
  };

  const SHAPE_NAMES = {
    circle: 'circle',
    ellipse: 'ellipse',
    rect: 'rectangle',
    line: 'line',
    path: 'shape',
    polyline: 'line',
  };
  const lookOf = (e, style, rect) => {
    const tag = e.tagName.toLowerCase();
    if (e instanceof SVGElement) {
      const colour = colourOf(style.fill) || colourOf(style.stroke);
      let shape = SHAPE_NAMES[tag] || '';
      if (tag === 'text') shape = 'text';
      if (tag === 'polygon') {
        const corners = e.points ? e.points.numberOfItems : 0;
        shape = { 3: 'triangle', 4: 'rectangle', 5: 'pentagon', 6: 'hexagon' }[corners] || 'polygon';
      }
      if (shape === 'rectangle' && Math.abs(rect.width - rect.height) < 2) shape = 'square';
      return (colour + ' ' + shape).trim();
    }
    return colourOf(style.backgroundColor);
  };

  // ---- States ----

  const statesOf = (e, role, sorted, offscreen) => {
    const states = [];
    const aria = (name) => e.getAttribute('aria-' + name);
    const is = (name) => aria(name) === 'true';
    if ((('disabled' in e || e.matches('fieldset *')) && e.matches(':disabled')) || is('disabled'))
      states.push('disabled');
    if (e.tagName === 'INPUT' && (e.type === 'checkbox' || e.type === 'radio')) {
      states.push(e.indeterminate && e.type === 'checkbox' ? 'mixed' : e.checked ? 'checked' : 'unchecked');
    } else if (aria('checked')) {
      states.push({ true: 'checked', mixed: 'mixed' }[aria('checked')] || 'unchecked');
    }
    if (e.tagName === 'SUMMARY' && e.parentElement && e.parentElement.tagName === 'DETAILS') {
      states.push(e.parentElement.open ? 'expanded' : 'collapsed');
    } else if (aria('expanded')) {
      states.push(is('expanded') ? 'expanded' : 'collapsed');
    }
    if (!aria('expanded') && /^(true|menu)$/.test(aria('haspopup') || '') && role && role.startsWith('menuitem'))
      states.push('collapsed');
    if (is('selected') || (e.tagName === 'OPTION' && e.selected)) states.push('selected');
    if (is('pressed')) states.push('pressed');
    const current = aria('current');
    const shown = /(^|\s)(is-)?(active|selected|current|[a-z]+-(selected|selecting|state-active))(\s|$)/;
    if ((current && current !== 'false') || (!FIELDS.has(role) && shown.test(e.getAttribute('class') || '')))
      states.push('current');
    if (e.matches(':focus')) states.push('focused');
    if ((e.readOnly && FIELDS.has(role)) || is('readonly')) states.push('readonly');
    if (e.required || is('required')) states.push('required');
    if (is('invalid') || e.matches(':user-invalid')) states.push('invalid');
    if (e.multiple || is('multiselectable')) states.push('multiple');
    const classes = ' ' + (e.getAttribute('class') || '').toLowerCase() + ' ';
    if (
      e.getAttribute('draggable') === 'true' ||
      sorted ||
      /[\s-](draggable|sortable-handle|slider-handle)\s/.test(classes)
    ) {
      states.push('draggable');
    }
    if (e.hasAttribute('aria-dropeffect') || /[\s-]droppable\s/.test(classes)) states.push('droppable');
    if (e.type === 'password') states.push('password');
    if (offscreen) states.push('offscreen');
    return states;
  };

  const valueOf = (e, role) => {
    if (e.tagName === 'INPUT') {
      if (['password', 'checkbox', 'radio', 'button', 'submit', 'reset', 'image'].includes(e.type)) return undefined;
      if (e.type === 'file') return [...e.files].map((f) => f.name).join(', ');
      return squeeze(e.value, MAX_TEXT);
    }
    if (e.tagName === 'TEXTAREA') return e.value.slice(0, MAX_TEXT);
    if (e.tagName === 'SELECT') return [...e.selectedOptions].map((o) => squeeze(o.label || o.text)).join(', ');
    if (e.tagName === 'PROGRESS' || e.tagName === 'METER') return String(e.value);
    if (role === 'textbox' || role === 'searchbox' || role === 'combobox') return squeeze(e.innerText || '', MAX_TEXT);
    const now = e.getAttribute('aria-valuetext') || e.getAttribute('aria-valuenow');
    return now === null ? undefined : squeeze(now);
  };

  // ---- The walk ----

  const boxOf = (r) => [Math.round(r.x), Math.round(r.y), Math.round(r.width), Math.round(r.height)];
  const meet = (a, b) => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  });
  const outside = (r, clip) =>
    r.right <= clip.left || r.left >= clip.right || r.bottom <= clip.top || r.top >= clip.bottom;

  const SKIPPED = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD', 'META', 'LINK', 'TITLE', 'DATALIST']);

  const walkPage = (listening) => {
    const nodes = [];
    let text = null;
    let cut = false;
    let tables = 0;
    const range = document.createRange();

    const push = (node) => {
      if (nodes.length >= MAX_NODES) {
        cut = true;
        return;
      }
      nodes.push(node);
    };
    const flush = () => {
      if (!text) return;
      const plain = squeeze(text.parts.join(''), MAX_TEXT);
      if (plain) {
        const b = text.box;
        const node = {
          text: plain,
          box: boxOf({ x: b.left, y: b.top, width: b.right - b.left, height: b.bottom - b.top }),
        };
        if (text.at.inside) node.in = text.at.inside;
        if (text.at.cell) node.cell = text.at.cell;
        push(node);
      }
      text = null;
    };

    const addText = (node, at) => {
      const data = node.data;
      if (!/\S/.test(data)) {
        if (text && text.block === at.block) text.parts.push(' ');
        return;
      }
      if (at.hidden || at.unseen || at.named) return;
      range.selectNodeContents(node);
      const r = range.getBoundingClientRect();
      // What stands left of or above the page's start can never be seen.
      if (r.width < 2 || r.height < 2 || (!at.rolls && (r.right + scrollX < 0 || r.bottom + scrollY < 0))) return;
      if (at.gone && outside(r, at.gone)) return;
      if (text && text.block !== at.block) flush();
      if (!text)
        text = { parts: [], block: at.block, at, box: { left: r.left, top: r.top, right: r.right, bottom: r.bottom } };
      text.parts.push(data);
      const b = text.box;
      text.box = {
        left: Math.min(b.left, r.left),
        top: Math.min(b.top, r.top),
        right: Math.max(b.right, r.right),
        bottom: Math.max(b.bottom, r.bottom),
      };
    };

    const children = (e, at, depth) => {
      if (depth > MAX_DEPTH) {
        cut = true;
        return;
      }
      let list = e.childNodes;
      if (e.shadowRoot) list = e.shadowRoot.childNodes;
      else if (e.tagName === 'SLOT' && e.getRootNode() instanceof ShadowRoot) {
        const given = e.assignedNodes({ flatten: true });
        if (given.length) list = given;
      }
      for (const child of list) {
        if (nodes.length >= MAX_NODES) {
          cut = true;
          return;
        }
        if (child.nodeType === 3) addText(child, at);
        else if (child.nodeType === 1) visit(child, at, depth + 1);
      }
    };

    const visit = (e, at, depth) => {
      const tag = e.tagName.toUpperCase();
      if (SKIPPED.has(tag) || (tag === 'INPUT' && e.type === 'hidden')) return;
      const style = getComputedStyle(e);
      let stand = e;
      let rect = e.getBoundingClientRect();
      const choice = tag === 'INPUT' && (e.type === 'checkbox' || e.type === 'radio' || e.type === 'file');
      let none = style.display === 'none';
      const unseen = at.unseen || Number(style.opacity) < 0.05;
      let hidden = unseen || style.visibility !== 'visible';
      const tiny = rect.width < 3 && rect.height < 3 && style.overflow !== 'visible';
      // A drawn stand-in often hides the real box: then the label is what is seen and clicked.
      if (choice && (none || hidden || tiny || rect.width < 3 || outside(rect, at.clip))) {
        const label = [...(e.labels || [])].find(
          (l) => l.checkVisibility({ visibilityProperty: true }) && l.getBoundingClientRect().width > 3,
        );
        if (label) {
          stand = label;
          rect = label.getBoundingClientRect();
          none = false;
          hidden = false;
        }
      }
      if (none) return;

      const role = roleOf(e);
      let usable = !!role && (USABLE.has(role) || LEAVES.has(role));
      let soft = false;
      const pointer = style.cursor === 'pointer' && !at.pointer;
      const isLabel = tag === 'LABEL' && e.control;
      if (!usable && !isLabel && tag !== 'BODY' && tag !== 'HTML') {
        const handles = e.hasAttribute('onclick') || e.hasAttribute('onmousedown') || listening.has(e);
        const drag =
          e.getAttribute('draggable') === 'true' ||
          /(^|[\s-])(draggable|droppable|sortable-handle|slider-handle)(\s|$)/.test(e.getAttribute('class') || '');
        soft = handles || pointer || drag || at.sorts || e.hasAttribute('tabindex');
        // The edges of a window that can be resized are no things to use.
        if (style.cursor.endsWith('-resize') && Math.min(rect.width, rect.height) < 12) return;
        usable = soft;
      }
      if (role === 'gridcell' && !soft && !e.hasAttribute('tabindex')) usable = false;
      const drawn = !usable && e instanceof SVGElement && SHAPES.has(tag.toLowerCase()) && at.drawing;
      if (drawn) usable = true;

      const inner = { ...at, unseen, hidden, pointer: style.cursor === 'pointer' };
      if (style.display !== 'inline' && style.display !== 'contents') inner.block = e;
      if (style.overflowX !== 'visible' || style.overflowY !== 'visible') {
        // Texts for screen readers are often kept in a box of one pixel: a person does not see them.
        if (rect.width < 3 || rect.height < 3) inner.unseen = true;
        inner.clip = meet(at.clip, rect);
        // What is scrolled out of a box can be scrolled back.
        if (/auto|scroll/.test(style.overflowX + style.overflowY)) inner.rolls = true;
        if (style.overflowX === 'hidden' && style.overflowY === 'hidden')
          inner.gone = at.gone ? meet(at.gone, rect) : rect;
      }
      if (tag === 'TABLE') {
        // Counted here: a row's own index costs a walk through its table.
        inner.table = { id: ++tables, rows: 0 };
        inner.cell = undefined;
      }
      if (tag === 'TR' && at.table) inner.row = at.table.rows++;
      if ((tag === 'TD' || tag === 'TH') && at.table && inner.row !== undefined)
        inner.cell = [at.table.id, inner.row, e.cellIndex];
      if (tag === 'SVG') inner.drawing = rect.width > 60 && rect.height > 40;
      inner.sorts = /(^|[\s-])sortable(\s|$)/.test(e.getAttribute('class') || '');
      if (tag === 'BR' || tag === 'HR') {
        if (text) text.parts.push(' ');
        return;
      }

      // The words of a label are the name of its control.
      if (isLabel && !at.named) {
        const seen = e.control.type !== 'hidden';
        inner.named = seen;
        children(e, inner, depth);
        return;
      }

      const visible =
        !hidden &&
        rect.width > 1 &&
        rect.height > 1 &&
        (at.rolls || (rect.right + scrollX > 0 && rect.bottom + scrollY > 0));
      const scrolls =
        !usable &&
        tag !== 'HTML' &&
        tag !== 'BODY' &&
        /auto|scroll/.test(style.overflowY + style.overflowX) &&
        (e.scrollHeight > e.clientHeight + 4 || e.scrollWidth > e.clientWidth + 4) &&
        e.clientHeight > 20;
      const given = (e.getAttribute('role') || '').toLowerCase();
      const dialog = given === 'dialog' || given === 'alertdialog' || (tag === 'DIALOG' && e.open);
      const picture = role === 'image' || role === 'heading' || dialog;

      if (!(usable || scrolls || picture) || !visible) {
        // An invisible element that can be used is no element, but what is in it may be seen.
        if (usable && LEAVES.has(role) && !e.shadowRoot && !editable(e)) return;
        children(e, inner, depth);
        return;
      }

      let leaf = LEAVES.has(role) || drawn;
      const holds =
        !leaf &&
        !!e.querySelector &&
        (!!e.querySelector(STILL) || [...e.querySelectorAll('*')].slice(0, 200).some((c) => listening.has(c)));
      if (soft) {
        const parts = [...e.children].filter(
          (c) => !getComputedStyle(c).display.startsWith('inline') && /\S/.test(c.textContent),
        );
        const shapes = inner.drawing && tag === 'SVG';
        const list = inner.sorts || shapes || (parts.length > 1 && (e.tagName === 'UL' || e.tagName === 'OL'));
        leaf = !holds && !list && !dialog && !e.shadowRoot && (e.textContent || '').length <= 300;
        // A listener on a whole area serves what is in it: it is no thing of its own.
        const area = rect.width * rect.height > 0.6 * innerWidth * innerHeight;
        if (holds && area) {
          children(e, inner, depth);
          return;
        }
      }
      if (picture && !dialog) leaf = role === 'image' || !holds;
      if (role === 'link' && e.querySelector('button, input, select, textarea')) leaf = false;
      if (e.shadowRoot && !USABLE.has(role)) leaf = false;

      flush();
      const said = drawn
        ? tag === 'TEXT'
          ? squeeze(e.textContent)
          : ''
        : (leaf || !soft) && !dialog && (role || !scrolls)
          ? nameOf(e, role || 'generic')
          : nameOf(e, null);
      if (role === 'image' && !usable && !said) return;
      const node = {
        id: idOf(e),
        role: dialog ? 'dialog' : role || (drawn ? 'graphic' : scrolls ? 'region' : 'clickable'),
        tag: tag.toLowerCase(),
        name: said,
      };
      if (tag === 'A' && !role) node.role = 'link';
      const value = valueOf(e, role);
      if (value !== undefined) node.value = value;
      if (tag === 'INPUT' && !['text', 'checkbox', 'radio'].includes(e.type)) node.type = e.type;
      const place = e.getAttribute('placeholder') || e.getAttribute('aria-placeholder');
      if (place && place !== node.name) node.placeholder = squeeze(place);
      if (tag === 'SELECT') node.options = [...e.options].slice(0, MAX_OPTIONS).map((o) => squeeze(o.label || o.text));
      else if (e.list && e.list.options)
        node.options = [...e.list.options].slice(0, MAX_OPTIONS).map((o) => squeeze(o.value || o.label));
      if (role === 'heading') node.level = Number(tag[1] || e.getAttribute('aria-level')) || 2;
      if (tag === 'A' && e.href && typeof e.href === 'string') node.href = e.href.slice(0, 500);
      if (role === 'frame') node.frame = true;
      if ((e.min || e.max) && (e.type === 'range' || e.type === 'number'))
        node.range = [Number(e.min || 0), Number(e.max || 100)];
      else if (e.hasAttribute('aria-valuemin'))
        node.range = [Number(e.getAttribute('aria-valuemin')), Number(e.getAttribute('aria-valuemax'))];
      const states = statesOf(e, role, at.sorts, outside(rect, at.clip));
      if (scrolls) states.push('scrollable');
      if (states.length) node.states = states;
      if (!node.name && node.role !== 'region') {
        const look = lookOf(e, style, rect);
        const hint = drawn ? '' : hintOf(e, leaf);
        if (look && leaf && !FIELDS.has(role)) node.look = look;
        if (hint) node.hint = hint;
      } else if (drawn || (e instanceof SVGElement && SHAPES.has(tag.toLowerCase())))
        node.look = lookOf(e, style, rect);
      if (at.inside) node.in = at.inside;
      if (inner.cell) node.cell = inner.cell;
      node.box = boxOf(rect);
      push(node);
      if (leaf) return;
      if (soft || dialog || role === 'treeitem' || role === 'gridcell' || role === 'link') inner.inside = node.id;
      if (role === 'heading') inner.named = true;
      inner.block = e;
      const start = nodes.length;
      children(e, inner, depth);
      flush();
      // A listener around named things serves them: it is no thing of its own.
      const bare = soft && !dialog && !node.name && !/draggable|droppable/.test(states.join());
      if (!bare) return;
      const mine = nodes.slice(start).filter((n) => n.in === node.id);
      if (mine.some((n) => n.text) || !mine.some((n) => n.name || n.role === 'graphic')) return;
      nodes.splice(start - 1, 1);
      for (const n of mine) {
        if (at.inside) n.in = at.inside;
        else delete n.in;
      }
    };

    const root = document.body || document.documentElement;
    const clip = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    if (root) visit(root, { block: root, clip }, 0);
    flush();
    return { nodes, cut };
  };

  const snapshot = (listeners) => {
    const { nodes, cut } = walkPage(new Set(listeners || []));
    const page = document.scrollingElement || document.documentElement;
    const view = {
      url: location.href,
      title: squeeze(document.title, 300),
      width: innerWidth,
      height: innerHeight,
      scroll: {
        x: Math.round(scrollX),
        y: Math.round(scrollY),
        max_x: Math.max(0, Math.round(page.scrollWidth - innerWidth)),
        max_y: Math.max(0, Math.round(page.scrollHeight - innerHeight)),
      },
      nodes,
    };
    if (cut) view.cut = true;
    return view;
  };

  // ---- Acts ----

  const GONE = { error: 'the element is no longer on the page' };
  const fire = (e, ...names) => {
    for (const name of names) {
      const event =
        name === 'input'
          ? new InputEvent('input', { bubbles: true, composed: true })
          : new Event(name, { bubbles: true });
      e.dispatchEvent(event);
    }
  };

  const deepest = (x, y) => {
    let root = document;
    let hit = null;
    for (let i = 0; i < 20; i++) {
      const next = root.elementFromPoint(x, y);
      if (!next || next === hit) break;
      hit = next;
      if (!next.shadowRoot) break;
      root = next.shadowRoot;
    }
    return hit;
  };
  const above = (e) =>
    e.parentElement || e.assignedSlot || (e.getRootNode() instanceof ShadowRoot ? e.getRootNode().host : null);
  // Not `===`: after a debugger has looked for listeners, one element can have two wrappers here.
  const within = (inner, outer) => {
    for (let e = inner; e; e = e.assignedSlot || above(e)) if (e.isSameNode(outer)) return true;
    return false;
  };

  const point = (id) => {
    const e = element(id);
    if (!e) return { gone: true };
    let target = e;
    const seen = (x) => {
      const r = x.getBoundingClientRect();
      return r.width > 2 && r.height > 2 && x.checkVisibility({ visibilityProperty: true });
    };
    if (!seen(e) && e.labels) target = [...e.labels].find(seen) || e;
    let rect = target.getBoundingClientRect();
    const fits = (r) => r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth;
    const ours = (hit) =>
      hit && (within(hit, target) || within(hit, e) || (e.labels && [...e.labels].some((l) => within(hit, l))));
    const middle = (r) => [r.x + r.width / 2, r.y + r.height / 2];
    // Clicks right after a scroll can miss: with `moved`, ask again when the next frame is drawn.
    let moved = false;
    if (!fits(rect) || !ours(deepest(...middle(rect)))) {
      const before = rect.y + rect.x;
      const again = () => {
        const now = target.getBoundingClientRect();
        moved = Math.abs(now.y + now.x - before) > 0.5;
      };
      target.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      again();
    }
    const answer = (x, y, covered) => ({ x, y, ...(moved && { moved }), ...(covered && { covered }) });
    const rects = [...target.getClientRects()].filter((r) => r.width > 1 && r.height > 1);
    if (!rects.length) return { gone: true };
    rect = rects.reduce((a, b) => (b.width * b.height > a.width * a.height ? b : a));
    const inside = meet(
      { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom },
      { left: 0, top: 0, right: innerWidth, bottom: innerHeight },
    );
    const at = (fx, fy) => [
      inside.left + (inside.right - inside.left) * fx,
      inside.top + (inside.bottom - inside.top) * fy,
    ];
    let hit = null;
    for (const [fx, fy] of [
      [0.5, 0.5],
      [0.25, 0.5],
      [0.75, 0.5],
      [0.5, 0.25],
      [0.5, 0.75],
      [0.1, 0.2],
      [0.9, 0.8],
    ]) {
      const [x, y] = at(fx, fy);
      const here = deepest(x, y);
      if (ours(here)) return answer(x, y);
      hit = hit || here;
    }
    const [x, y] = at(0.5, 0.5);
    if (!hit || within(target, hit)) return answer(x, y);
    return answer(
      x,
      y,
      ids.get(hit) || hit.tagName.toLowerCase() + (content(hit) ? ' "' + content(hit).slice(0, 60) + '"' : ''),
    );
  };

  const focus = (id) => {
    const e = element(id);
    if (!e) return GONE;
    e.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
    e.focus({ preventScroll: true });
    return { ok: true, focused: e.matches(':focus, :focus-within') };
  };

  const unusable = (e) =>
    e.matches(':disabled')
      ? { error: 'the element is disabled' }
      : e.readOnly
        ? { error: 'the element is read-only' }
        : null;

  const clear = (id) => {
    const e = element(id);
    if (!e) return GONE;
    const no = unusable(e);
    if (no) return no;
    e.focus();
    if (e.isContentEditable) {
      getSelection().selectAllChildren(e);
      document.execCommand('delete');
    } else if ('value' in e && e.tagName !== 'SELECT') {
      if (e.value !== '') {
        e.value = '';
        fire(e, 'input', 'change');
      }
    } else return { error: 'the element holds no text' };
    return { ok: true };
  };

  const select = (id, wanted) => {
    const e = element(id);
    if (!e) return GONE;
    if (e.tagName !== 'SELECT') return { error: 'the element is no list of options: click it instead' };
    if (e.disabled) return { error: 'the element is disabled' };
    const fold = (s) => squeeze(String(s), 1000).toLowerCase();
    const chosen = [];
    for (const want of wanted || []) {
      const options = [...e.options];
      const found =
        options.find((o) => squeeze(o.label || o.text, 1000) === squeeze(String(want), 1000)) ||
        options.find((o) => fold(o.label || o.text) === fold(want)) ||
        options.find((o) => o.value === String(want));
      if (!found) return { error: 'there is no option "' + squeeze(String(want), 80) + '"' };
      if (found.disabled) return { error: 'the option "' + squeeze(String(want), 80) + '" is disabled' };
      chosen.push(found);
    }
    if (chosen.length !== 1 && !e.multiple) return { error: 'exactly one option can be selected' };
    e.focus();
    for (const option of e.options) {
      const on = chosen.includes(option);
      if (option.selected !== on && (on || e.multiple)) option.selected = on;
    }
    fire(e, 'input', 'change');
    return { ok: true, value: valueOf(e) };
  };

  const checked = (e) =>
    e.tagName === 'INPUT' ? e.checked : (e.getAttribute('aria-checked') || e.getAttribute('aria-pressed')) === 'true';
  const check = (id, on) => {
    const e = element(id);
    if (!e) return GONE;
    if (e.matches(':disabled')) return { error: 'the element is disabled' };
    const can =
      (e.tagName === 'INPUT' && /^(checkbox|radio)$/.test(e.type)) ||
      e.hasAttribute('aria-checked') ||
      e.hasAttribute('aria-pressed');
    if (!can) return { error: 'the element cannot be checked' };
    if (checked(e) !== !!on) e.click();
    return checked(e) === !!on ? { ok: true } : { ok: true, pending: true };
  };

  const set = (id, value) => {
    const e = element(id);
    if (!e) return GONE;
    const no = unusable(e);
    if (no) return no;
    if (e.isContentEditable) {
      e.focus();
      getSelection().selectAllChildren(e);
      document.execCommand('insertText', false, String(value));
      return { ok: true };
    }
    if (e.tagName !== 'INPUT' && e.tagName !== 'TEXTAREA') return { error: 'the element holds no value' };
    if (/^(checkbox|radio|file|button|submit|reset|image)$/.test(e.type))
      return { error: 'the element holds no value that can be set' };
    e.focus();
    const before = e.value;
    e.value = String(value);
    if (e.value === '' && String(value) !== '') {
      e.value = before;
      return { error: 'the element does not take this value' };
    }
    fire(e, 'input', 'change');
    return { ok: true, value: e.type === 'password' ? undefined : e.value };
  };

  const files = (id, list) => {
    const e = element(id);
    if (!e) return GONE;
    const transfer = new DataTransfer();
    for (const file of list || []) {
      const bytes = Uint8Array.from(atob(file.base64), (c) => c.charCodeAt(0));
      transfer.items.add(new File([bytes], file.name, { type: file.type || 'application/octet-stream' }));
    }
    if (e.tagName === 'INPUT' && e.type === 'file') {
      if (e.disabled) return { error: 'the element is disabled' };
      if (transfer.files.length > 1 && !e.multiple) return { error: 'the element takes one file only' };
      e.files = transfer.files;
      fire(e, 'input', 'change');
    } else {
      for (const name of ['dragenter', 'dragover', 'drop']) {
        e.dispatchEvent(
          new DragEvent(name, { bubbles: true, cancelable: true, composed: true, dataTransfer: transfer }),
        );
      }
    }
    return { ok: true, files: transfer.files.length };
  };

  const scroll = (id, dx, dy) => {
    let e = document.scrollingElement || document.documentElement;
    if (id) {
      e = element(id);
      if (!e) return GONE;
      // The nearest box around it that can be scrolled.
      const roll = (x) => x.scrollHeight > x.clientHeight + 2 || x.scrollWidth > x.clientWidth + 2;
      while (e && !(roll(e) && (/auto|scroll/.test(getComputedStyle(e).overflow) || e.tagName === 'TEXTAREA')))
        e = above(e);
      e = e || document.scrollingElement || document.documentElement;
    }
    const before = [e.scrollLeft, e.scrollTop];
    e.scrollBy({ left: Number(dx) || 0, top: Number(dy) || 0, behavior: 'instant' });
    return { ok: true, moved: [Math.round(e.scrollLeft - before[0]), Math.round(e.scrollTop - before[1])] };
  };

  const text = () => ({ ok: true, text: (document.body ? document.body.innerText : '').slice(0, 200000) });

  Object.defineProperty(globalThis, 'agoraView', {
    value: Object.freeze({ snapshot, point, focus, clear, select, check, set, files, scroll, text, element }),
  });
})();
