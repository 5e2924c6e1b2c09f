// The service worker. It stores no page and no data: it only shows, while Perch does not answer, when Perch was last there.

interface Work {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetch extends Work {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Message extends Work {
  readonly data: { words?: Words; last?: number };
}
interface Words {
  lang: string;
  title: string;
  text: string;
  last: string; // with {at}
  again: string;
}
declare const self: {
  addEventListener(kind: "install" | "activate", listener: (e: Work) => void): void;
  addEventListener(kind: "fetch", listener: (e: Fetch) => void): void;
  addEventListener(kind: "message", listener: (e: Message) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
};

const english: Words = { lang: "en", title: "Perch is not there", text: "This page opens by itself once Perch is back.", last: "It was last there {at}.", again: "Try again" };

async function kept<T>(name: string): Promise<T | undefined> {
  return (await (await caches.open("perch")).match(name))?.json() as Promise<T> | undefined;
}

async function keep(name: string, value: unknown): Promise<void> {
  await (await caches.open("perch")).put(name, new Response(JSON.stringify(value)));
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

async function offline(): Promise<Response> {
  const [words, last] = [(await kept<Words>("words")) ?? english, await kept<number>("last")];
  const at = last === undefined ? "" : new Intl.DateTimeFormat(words.lang, { dateStyle: "medium", timeStyle: "short" }).format(last);
  const body = `<!doctype html><html lang="${escaped(words.lang)}"><head><meta charset="utf-8"><title>${escaped(words.title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{font:1rem/1.5 system-ui,sans-serif;display:grid;place-content:center;justify-items:center;text-align:center;min-height:100dvh;margin:0;padding:0 1rem;box-sizing:border-box}
h1{font-size:1.5rem;margin:1rem 0 .25rem}p{margin:.25rem 0}a{display:inline-block;margin-top:1rem;padding:.7rem 1.2rem;border-radius:10px;background:#08706a;color:#fff;text-decoration:none;font-weight:600}</style></head>
<body><svg viewBox="0 0 32 32" width="96" height="96" fill="none" stroke="#fff" stroke-width="1.4" stroke-linecap="round" aria-hidden="true"><rect x="4" y="3" width="24" height="19" rx="5" fill="#0d0f11" stroke="none"/>
<path d="M10 11.500a2 2 0 0 0 4 0M18 11.500a2 2 0 0 0 4 0M14.500 17h3"/><path d="M16 22v3M3 27.500h26" stroke="#2f8f88" stroke-width="2.600"/></svg>
<main><h1>${escaped(words.title)}</h1><p>${escaped(words.text)}</p>${at === "" ? "" : `<p>${escaped(words.last.replace("{at}", at))}</p>`}<a href="">${escaped(words.again)}</a></main>
<script nonce="perch">setInterval(() => fetch("session", { cache: "no-store" }).then((a) => a.ok && location.reload(), () => undefined), 3000)</script></body></html>`;
  return new Response(body, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-perch'; connect-src 'self'" } });
}

async function open(request: Request): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(request);
  } catch {
    return offline();
  }
  keep("last", Date.now()).catch(() => undefined); // the storage may be full
  return answer;
}

self.addEventListener("install", (e) => e.waitUntil(self.skipWaiting()));
self.addEventListener("activate", (e) => e.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (e) => {
  if (e.request.mode === "navigate") e.respondWith(open(e.request));
});
self.addEventListener("message", (e) => {
  for (const [name, value] of Object.entries(e.data)) e.waitUntil(keep(name, value));
});

export {}; // the name self is of this file only
