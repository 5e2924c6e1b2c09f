// What tests find and read in a page, through its open shadow trees. A selector
// "a >>> b" is a b in what is shown below an a, at whatever depth; "b=text" is the
// innermost b that shows a text.
globalThis.see = {
  below(root, all = []) {
    if (root.shadowRoot) see.below(root.shadowRoot, all);
    for (const e of root.querySelectorAll("*")) {
      all.push(e);
      if (e.shadowRoot) see.below(e.shadowRoot, all);
    }
    return all;
  },
  // text is what an element shows, in the order in which it is seen.
  text(n) {
    const read = (n) => {
      if (n.nodeType === Node.TEXT_NODE) return n.data;
      if (n.nodeType === Node.ELEMENT_NODE) {
        if (["STYLE", "SCRIPT", "NOSCRIPT"].includes(n.tagName)) return "";
        if (["INPUT", "TEXTAREA"].includes(n.tagName)) return ` ${n.value} `;
        if (n.tagName === "SELECT") return ` ${n.selectedOptions[0]?.textContent ?? ""} `;
        if (n.tagName === "SLOT" && n.assignedNodes().length > 0) return n.assignedNodes().map(read).join("");
      }
      const inside = [...(n.shadowRoot ?? n).childNodes].map(read).join("");
      return n.nodeType === Node.ELEMENT_NODE && getComputedStyle(n).display !== "inline" ? ` ${inside} ` : inside;
    };
    return n ? read(n).replace(/\s+/g, " ").trim() : "";
  },
  shown(e) {
    return e.checkVisibility({ visibilityProperty: true });
  },
  all(selector) {
    let found = [document];
    for (const part of selector.split(" >>> ")) {
      const [css, says] = part.split(/=(?=[^\]]*$)/);
      found = [...new Set(found.flatMap((root) => see.below(root).filter((e) => e.matches(css))))];
      if (says === undefined) continue;
      found = found.filter((e) => see.text(e).includes(says));
      found = found.filter((e) => !found.some((o) => o !== e && see.below(e).includes(o)));
    }
    return found;
  },
  one(selector) {
    const all = see.all(selector);
    return all.find(see.shown) ?? all.find((e) => e.type === "file");
  },
  has(selector) {
    return see.one(selector) !== undefined;
  },
  says(selector, text) {
    return see.all(selector).some((e) => see.shown(e) && see.text(e).includes(text));
  },
  // leaves are the texts that are shown below an element, each as it stands.
  leaves(root) {
    return see.below(root).filter((e) => see.shown(e) && !e.closest("[lang=en], style")).flatMap((e) =>
      [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.data.trim()).filter((text) => text !== ""));
  },
  // name is an element with those around it, for the report of a failed test.
  name(e) {
    const names = [];
    for (; e; e = e.parentElement ?? e.getRootNode().host) {
      names.unshift(e.tagName.toLowerCase() + (e.id ? `#${e.id}` : "") + (e.dataset?.test ? `[data-test=${e.dataset.test}]` : ""));
    }
    return names.join(" ");
  },
  // at is the middle of an element that can be clicked, or why there is none yet.
  at(selector) {
    const e = see.one(selector);
    if (!e) return { why: "it is not shown" };
    if (e.disabled || e.busy) return { why: "it is disabled" };
    e.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const r = e.getBoundingClientRect();
    const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
    let top = document.elementFromPoint(x, y);
    for (let inner = top; inner?.shadowRoot; ) {
      inner = inner.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === top) break;
      top = inner;
    }
    for (let o = top; o; o = o.assignedSlot ?? o.parentElement ?? o.getRootNode().host) if (o === e) return { x, y };
    return { why: `it is behind ${top ? see.name(top) : "nothing"}` };
  },
  missed: false, // whether the last click has hit something else
  // aim has the page get the next click only if it hits this element.
  aim(selector) {
    see.aimed = see.one(selector);
    see.missed = false;
    return true;
  },
  set(selector, value) {
    const e = see.one(selector);
    e.value = value;
    for (const kind of ["input", "change"]) e.dispatchEvent(new Event(kind, { bubbles: true, composed: true }));
    return true;
  },
  // wide are the elements that reach beyond the right edge.
  wide() {
    if (document.scrollingElement.scrollWidth <= innerWidth) return [];
    return see.below(document.body).filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => see.name(e)).slice(-3);
  },
  // small are the elements to press that are less than 44 px wide or high, but for links in a text and the boxes of labels.
  small() {
    const inText = (e) => e.matches("a") && getComputedStyle(e).display === "inline" || e.matches("[type=checkbox], [type=radio], .skip");
    return see.below(document.body).filter((e) => e.matches("a, button, input, select, textarea, summary") && see.shown(e) && !inText(e)).filter((e) => {
      const r = e.getBoundingClientRect();
      return r.width < 44 || r.height < 44;
    }).map((e) => see.name(e));
  },
  broken: [], // rules of the Content-Security-Policy
};
for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
  window.addEventListener(kind, (e) => {
    if (see.aimed && !e.composedPath().includes(see.aimed)) {
      see.missed = true;
      e.preventDefault();
      e.stopImmediatePropagation();
    }
    if (kind === "click") see.aimed = undefined; // what a label passes on is its own
  }, { capture: true });
}
document.addEventListener("securitypolicyviolation", (e) => {
  const on = e.composedPath()[0];
  see.broken.push(`${e.violatedDirective} ${e.blockedURI} at ${on?.tagName ? see.name(on) : `${e.sourceFile}:${e.lineNumber}`} ${e.sample}`);
});
