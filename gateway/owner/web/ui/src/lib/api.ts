// Requests to the server of the page. Every path is relative to the document's base, because Home Assistant serves the
// page under a prefix.

// Refusal is an error response. Its message is the server's English sentence for people; said.ts translates it.
export class Refusal extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    readonly body: unknown = undefined,
  ) {
    super(message);
    this.name = "Refusal";
  }
}

// outOfSession is the event of the window after a response with status 401; the shell then shows the login view.
export const outOfSession = "perch-out-of-session";

function address(path: string): string {
  return new URL(path, document.baseURI).href;
}

function refusal(status: number, text: string): Refusal {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const error = (body as { error?: { code?: unknown; message?: unknown } } | undefined)?.error;
  const code = typeof error?.code === "string" ? error.code : `http_${status}`;
  const message = typeof error?.message === "string" && error.message !== "" ? error.message : `HTTP ${status}`;
  if (status === 401) window.dispatchEvent(new CustomEvent(outOfSession));
  return new Refusal(code, status, message, body);
}

function parsed<T>(text: string): T {
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

// ahead is the server's time minus the browser's, in ms. The clock of a Raspberry Pi has no battery and may be wrong,
// and the times of timers are by that clock.
let ahead = 0;

// serverNow returns the time by the server's clock, in ms since 1970.
export function serverNow(): number {
  return Date.now() + ahead;
}

function setClock(answer: Response): void {
  const at = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(at)) return;
  const off = at - Date.now();
  ahead = Math.abs(off) < 2000 ? 0 : off; // the header has whole seconds
}

// byScript is a header that the server requires in requests with the session's cookie. A browser sends the cookie also
// with requests of pages on other ports of this host, but those pages cannot set the header.
const byScript = ["X-Perch-Page", "1"] as const;

// fetchOwned is fetch for the owner's API. An error response is thrown as a Refusal.
export async function fetchOwned(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set(...byScript);
  const answer = await fetch(address(path), { cache: "no-store", ...init, headers });
  setClock(answer);
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  return answer;
}

// eachPart calls take with each part of a response's body, as it arrives.
export async function eachPart(answer: Response, take: (part: Uint8Array<ArrayBuffer>) => void): Promise<void> {
  const reader = answer.body!.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) take(part.value);
}

const mostKept = 20_000; // characters; a browser keeps at most 64 KiB for all requests of closed pages

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  // A change is sent to its end, also if the page is closed.
  const init: RequestInit = { method, headers: { Accept: "application/json" }, keepalive: method !== "GET" };
  if (body !== undefined) {
    init.body = body instanceof Blob ? body : JSON.stringify(body);
    init.keepalive = typeof init.body === "string" && init.body.length < mostKept;
    init.headers = { Accept: "application/json", "Content-Type": body instanceof Blob ? body.type || "application/octet-stream" : "application/json" };
  }
  return parsed<T>(await (await fetchOwned(path, init)).text());
}

// get sends a GET request and returns the JSON of the response.
export function get<T>(path: string): Promise<T> {
  return request<T>("GET", path);
}

// send sends a value as JSON, or a Blob unchanged, and returns the JSON of the response, or undefined if it is empty.
export function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  return request<T>(method, path, body);
}

// getBlob returns a response that is not JSON, such as a picture.
export async function getBlob(path: string, init?: RequestInit): Promise<Blob> {
  return (await fetchOwned(path, init)).blob();
}

// upload sends a file. It uses XMLHttpRequest, because fetch does not report the progress of an upload.
export function upload<T>(path: string, file: Blob, progress: (share: number) => void, signal?: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address(path));
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader(...byScript);
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.upload.addEventListener("progress", (e) => {
      if (e.lengthComputable && e.total > 0) progress(e.loaded / e.total);
    });
    request.addEventListener("load", () => {
      if (request.status < 200 || request.status >= 300) {
        reject(refusal(request.status, request.responseText));
        return;
      }
      progress(1);
      try {
        resolve(parsed<T>(request.responseText));
      } catch (e) {
        reject(e instanceof Error ? e : new Error(String(e)));
      }
    });
    request.addEventListener("error", () => reject(new TypeError("Failed to fetch")));
    request.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    if (signal?.aborted) {
      reject(new DOMException("aborted", "AbortError"));
      return;
    }
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

// socketURL returns the address of a WebSocket on the same server.
export function socketURL(path: string, query: Record<string, string> = {}): string {
  const url = new URL(path, document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  return url.href;
}
