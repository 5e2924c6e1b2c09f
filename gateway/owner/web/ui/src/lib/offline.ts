// The service worker of the page, which shows when Perch was last there. Browsers have none in a page from plain http.

import { feed } from "./feed.js";
import { catalogue, language, languageChanged, languageTarget } from "./words.js";

const say = catalogue("shell");

// watch starts the service worker, and tells it the words of the page and when Perch was last there.
export async function watch(): Promise<void> {
  if (!("serviceWorker" in navigator) || new URL(document.baseURI).pathname !== "/") return; // a proxy's page is not Perch's to keep
  try {
    await navigator.serviceWorker.register("sw.js");
  } catch {
    return; // the browser does not trust the certificate
  }
  const worker = (await navigator.serviceWorker.ready).active;
  const tell = () =>
    worker?.postMessage({ words: { lang: language(), title: say("offline"), text: say("offlineText"), last: say("offlineLast"), again: say("reload") }, last: Date.now() });
  tell();
  languageTarget.addEventListener(languageChanged, tell);
  feed.addEventListener("lost", tell);
}
