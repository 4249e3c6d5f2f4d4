'use strict';
// A run that goes on: asks the server how far the record is, and has the page made anew
// once it is further. What was chosen, sorted, opened and scrolled to stays.
(() => {
  const tag = document.querySelector('meta[name=fathom-live]').content;
  const KEPT = `fathom ${location.pathname}`;
  /** Between two questions, in ms, and how long a page stands at the least. */
  const ASK_MS = 2000;
  const STAND_MS = 4000;
  /** In which all that is in view is drawn. */
  const SETTLE_MS = 2000;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const bar = charts.element('p', 'following');
  const told = charts.element('span', '', 'Follows the run.');
  told.setAttribute('role', 'status');
  const hold = charts.element('button', '', 'Hold');
  hold.type = 'button';
  let held = false;

  // ---- What stays ----------------------------------------------------------

  /** A name for each element, the same on the next page: its section, what it is, which of them. */
  function named(selector) {
    const counts = new Map();
    return all(selector).map((it) => {
      const place = it.closest('[id]')?.id ?? '';
      const name = [place, it.tagName, it.name ?? '', it.getAttribute('aria-label') ?? ''].join(' ');
      const nth = counts.get(name) ?? 0;
      counts.set(name, nth + 1);
      return [`${name} ${nth}`, it];
    });
  }

  const FIELDS = 'main select, main input';
  const BOXES = 'main details';
  const LISTS = '[role=tablist]';
  const SORTED = 'table.sortable th';
  const CHARTS = '.chart';

  const PLACES = 'header, main section, main h2, main .chart';
  const topOf = (it) => it.getBoundingClientRect().top;

  /** What begins next to the window's upper edge, and how far from it. */
  function anchor() {
    const places = named(PLACES).filter(([, it]) => it.getClientRects().length);
    const nearest = places.reduce((a, b) => (Math.abs(topOf(b[1])) < Math.abs(topOf(a[1])) ? b : a));
    return [nearest[0], topOf(nearest[1])];
  }

  function keep() {
    const focus = named(`${FIELDS}, main button, main a, main summary`).find(([, it]) => it === document.activeElement);
    const kept = {
      fields: named(FIELDS).map(([name, it]) => [name, it.value]),
      boxes: named(BOXES).map(([name, it]) => [name, it.open]),
      tabs: named(LISTS).map(([name, it]) => [name, it.querySelector('[aria-selected=true]')?.dataset.metric]),
      sorted: named(SORTED).map(([name, it]) => [name, it.getAttribute('aria-sort')]).filter(([, how]) => how),
      views: named(CHARTS).map(([name, it]) => [name, it.chart?.view?.() ?? it.view]).filter(([, view]) => view),
      focus: focus && [focus[0], focus[1].selectionStart ?? null],
      anchor: anchor(),
      dialog: document.querySelector('dialog')?.scrollTop ?? 0,
    };
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
  }

  function scroll(kept) {
    const place = new Map(named(PLACES)).get(kept.anchor[0]);
    if (place) window.scrollBy({ top: topOf(place) - kept.anchor[1], behavior: 'instant' });
    const dialog = document.querySelector('dialog');
    if (dialog) dialog.scrollTop = kept.dialog;
  }

  /** Scrolls there, and again while graphs that are drawn move what stands below them. */
  function settle(kept) {
    const sizes = new ResizeObserver(() => scroll(kept));
    sizes.observe(document.body);
    const leave = () => sizes.disconnect();
    for (const kind of ['wheel', 'touchstart', 'keydown', 'pointerdown']) window.addEventListener(kind, leave, { once: true, passive: true });
    setTimeout(leave, SETTLE_MS);
    scroll(kept);
  }

  function restore() {
    const text = sessionStorage.getItem(KEPT);
    sessionStorage.removeItem(KEPT);
    if (text === null) return;
    const kept = JSON.parse(text);
    const each = (selector, rows, put) => {
      const now = new Map(named(selector));
      for (const [name, value] of rows) if (now.has(name)) put(now.get(name), value);
    };
    each(BOXES, kept.boxes, (it, open) => { it.open = open; });
    each(FIELDS, kept.fields, (it, value) => {
      if (it.value === value) return;
      const before = it.value;
      it.value = value;
      // What was chosen may be gone.
      if (it.value !== value) it.value = before;
      else for (const kind of ['input', 'change']) it.dispatchEvent(new Event(kind, { bubbles: true }));
    });
    each(LISTS, kept.tabs, (it, metric) => {
      const tab = all('[role=tab]', it).find((button) => button.dataset.metric === metric);
      if (tab && tab.getAttribute('aria-selected') !== 'true') tab.click();
    });
    each(SORTED, kept.sorted, (it, how) => {
      for (let n = 0; n < 2 && it.getAttribute('aria-sort') !== how; n += 1) it.querySelector('button').click();
    });
    // Of what is not drawn yet when it is.
    each(CHARTS, kept.views, (it, view) => {
      if (it.chart) it.chart.show?.(view);
      else it.view = view;
    });
    if (kept.focus) {
      each(`${FIELDS}, main button, main a, main summary`, [kept.focus], (it, at) => {
        it.focus({ preventScroll: true });
        if (at !== null) it.setSelectionRange?.(at, at);
      });
    }
    settle(kept);
  }

  // ---- What is new ---------------------------------------------------------

  const shown = performance.now();
  /** A page that takes long to make is made less often. */
  const stand = () => Math.max(STAND_MS, 5 * (performance.getEntriesByType('navigation')[0]?.duration ?? 0));

  function tell(text, kind = '') {
    if (told.textContent !== text) told.textContent = text;
    bar.dataset.kind = kind;
  }

  async function ask() {
    try {
      const answer = await fetch('state', { cache: 'no-store', signal: AbortSignal.timeout(20000) });
      if (!answer.ok) throw new Error(answer.statusText);
      const state = await answer.json();
      const isOver = state.status !== 'running';
      if (state.tag !== tag && !held && !document.hidden && (isOver || performance.now() - shown > stand())) {
        keep();
        location.reload();
        return;
      }
      hold.hidden = isOver;
      if (isOver) tell(`The run has ended: ${state.status}.`, 'over');
      else tell(held ? 'Holds still while the run goes on.' : 'Follows the run.');
    } catch {
      tell('The server does not answer; asking again.', 'lost');
    }
    setTimeout(ask, ASK_MS);
  }

  hold.setAttribute('aria-pressed', 'false');
  hold.addEventListener('click', () => {
    held = !held;
    hold.setAttribute('aria-pressed', String(held));
  });
  bar.append(told, hold);
  document.body.append(bar);
  history.scrollRestoration = 'manual';
  restore();
  ask();
})();
