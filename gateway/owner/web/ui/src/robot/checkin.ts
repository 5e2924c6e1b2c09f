// The check-in at a boot, and the activation of a robot that waits for its owner.

import { locale } from "../lib/words.js";
import type { Flash } from "./flash.js";
import type { Frames } from "./frames.js";
import { fieldsOf, numberOf, parse, textOf, type Fields } from "./wire.js";

// board and version are what it says of itself. The board is no Stack-chan's name,
// because stock ones know eight of the 21 faces only. The version is the firmware's
// whose behaviour this is.
export const board = "perch-page";
export const version = "2.4.2";

export interface Bootstrap {
  code: string;
  challenge: string;
  message: string;
  socket: boolean; // there is a websocket section
  mqtt: boolean;
  offered: string; // version of a firmware that it is offered
}

// Unreachable is a check-in without an answer that may be read. A browser does not
// say why.
export class Unreachable extends Error {
  constructor(readonly why: "nothing" | "mixed" | "status" | "nonsense", readonly url: string, readonly status = 0) {
    super(why);
  }
}

export class CheckIn {
  constructor(private readonly flash: Flash, private readonly frames: Frames) {}

  // url is the address of the check-in.
  get url(): string {
    return this.flash.ota || new URL("xiaozhi/ota/", document.baseURI).href;
  }

  // own reports whether the server is the one that the page came from.
  get own(): boolean {
    return !this.flash.ota;
  }

  // checkIn asks once, and takes over what the answer says of the WebSocket.
  async checkIn(signal: AbortSignal): Promise<Bootstrap> {
    const { status, text } = await this.post(this.url, systemInfo(this.flash), signal);
    if (status !== 200) throw new Unreachable("status", this.url, status);
    const reply = lower(parse(text));
    if (Object.keys(reply).length === 0) throw new Unreachable("nonsense", this.url);
    const socket = lower(fieldsOf(reply["websocket"]));
    this.take(socket);
    const activation = lower(fieldsOf(reply["activation"]));
    const firmware = lower(fieldsOf(reply["firmware"]));
    return {
      code: textOf(activation["code"]) ?? "", challenge: textOf(activation["challenge"]) ?? "", message: textOf(activation["message"]) ?? "",
      socket: Object.keys(socket).length > 0, mqtt: "mqtt" in reply,
      offered: textOf(firmware["url"]) ? textOf(firmware["version"]) ?? "" : "",
    };
  }

  // activated asks whether the owner has adopted it: yes, not yet, or no answer.
  async activated(signal: AbortSignal): Promise<"yes" | "wait" | "no"> {
    try {
      const url = new URL(this.url);
      url.pathname = url.pathname.replace(/\/?$/, "/activate");
      const { status } = await this.post(url.href, "{}", signal);
      return status === 200 ? "yes" : status === 202 ? "wait" : "no";
    } catch (e) {
      if (signal.aborted) throw e;
      return "no";
    }
  }

  // take keeps the WebSocket's settings. What is missing stays as it was.
  private take(socket: Fields): void {
    const w = this.flash.websocket;
    w.url = textOf(socket["url"]) ?? w.url;
    w.token = textOf(socket["token"]) ?? w.token;
    w.version = numberOf(socket["version"]) ?? w.version;
  }

  private async post(url: string, body: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
    if (location.protocol === "https:" && url.startsWith("http:")) throw new Unreachable("mixed", url);
    this.frames.add("out", "http", `POST ${url} ${body}`);
    const headers = {
      "Activation-Version": "1", "Device-Id": this.flash.mac, "Client-Id": this.flash.uuid, "Content-Type": "application/json",
      "Accept-Language": locale(),
    };
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]), cache: "no-store",
        credentials: this.own ? "same-origin" : "omit" });
      text = await answer.text();
    } catch (e) {
      if (signal.aborted) throw e;
      this.frames.add("note", "http", `no answer from ${url}`, 0);
      throw new Unreachable("nothing", url);
    }
    this.frames.add("in", "http", `${answer.status} ${text}`);
    return { status: answer.status, text };
  }
}

// lower gives an object its keys in small letters: the firmware finds them in any case.
function lower(o: Fields): Fields {
  return Object.fromEntries(Object.entries(o).map(([k, v]) => [k.toLowerCase(), v]));
}

// systemInfo is the body of a check-in, in the firmware's order. It names no chip,
// flash or partition: this robot has none, and no image fits it.
export function systemInfo(f: Flash): string {
  return JSON.stringify({
    version: 2, language: locale(), flash_size: 0, minimum_free_heap_size: "0", mac_address: f.mac, uuid: f.uuid, chip_model_name: "browser",
    chip_info: { model: 0, cores: navigator.hardwareConcurrency || 1, revision: 0, features: 0 },
    application: { name: "perch-page", version, compile_time: "", idf_version: "", elf_sha256: "" },
    partition_table: [], ota: { label: "page" }, display: { monochrome: false, width: 320, height: 240 },
    board: { type: board, name: board, ssid: "", rssi: 0, channel: 0, ip: "", mac: f.mac },
  });
}
