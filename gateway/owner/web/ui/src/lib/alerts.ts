// Notifications of the browser, for who wants them. Browsers show none for a page from plain http.

import { feed } from "./feed.js";
import { keep, kept } from "./store.js";

const key = "perch.alerts";

// canAlert reports whether the browser can show notifications of this page.
export function canAlert(): boolean {
  return window.isSecureContext && "Notification" in window;
}

// alerts reports whether the owner wants notifications in this browser.
export function alerts(): boolean {
  return canAlert() && kept(key) === "1" && Notification.permission === "granted";
}

// setAlerts turns notifications on or off, and returns whether they are on. The browser may ask the owner.
export async function setAlerts(on: boolean): Promise<boolean> {
  keep(key, on && (await Notification.requestPermission()) === "granted" ? "1" : "0");
  return alerts();
}

// watchAlerts shows each notification and question while nobody looks at the page.
export function watchAlerts(name: () => string): void {
  feed.on(["notification", "asked"], (e) => {
    if (!alerts() || (document.visibilityState === "visible" && document.hasFocus())) return;
    const options = { body: String(e.data["text"] ?? ""), tag: String(e.data["id"]), icon: new URL("assets/icon-192.png", document.baseURI).href };
    const show = () => {
      const shown = new Notification(name(), options);
      shown.onclick = () => {
        window.focus();
        location.hash = "#/notifications";
        shown.close();
      };
    };
    try {
      show();
    } catch {
      void navigator.serviceWorker?.ready.then((r) => r.showNotification(name(), options)); // Android takes them from a service worker only
    }
  });
}
