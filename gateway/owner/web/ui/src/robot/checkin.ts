// The check-in at boot, and the activation of a robot that waits for adoption.

import { locale } from "../lib/words.js";
import type { Flash } from "./flash.js";
import type { Frames } from "./frames.js";
import { fieldsOf, numberOf, parse, textOf, type Fields } from "./wire.js";

// board and version are sent in the check-in. The board is not the name of a Stack-chan, because the server would send
// only the eight faces that stock Stack-chans know. The version is of the firmware whose behaviour the page copies.
export const board = "perch-page";
export const version = "2.4.2";

export interface Bootstrap {
  code: string;
  challenge: string;
  message: string;
  socket: boolean; // the response has a websocket section
  mqtt: boolean; // the response has an mqtt section
  offered: string; // version of the offered firmware, or ""
}

// Unreachable is the error of a check-in without a usable response. If why is "nothing", the browser hides the reason.
export class Unreachable extends Error {
  constructor(readonly why: "nothing" | "mixed" | "status" | "nonsense", readonly url: string, readonly status = 0) {
    super(why);
  }
}

export class CheckIn {
  constructor(private readonly flash: Flash, private readonly frames: Frames) {}

  // url returns the address of the check-in.
  get url(): string {
    return this.flash.ota || new URL("xiaozhi/ota/", document.baseURI).href;
  }

  // own reports whether the server is the server of the page.
  get own(): boolean {
    return !this.flash.ota;
  }

  // checkIn checks in once, and stores the WebSocket's settings from the response.
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

  // activated asks whether the owner has adopted the robot: yes, not yet (wait), or another response or none (no).
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

  // take stores the WebSocket's settings. Missing ones stay unchanged.
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

// lower converts the keys of an object to lower case, because the firmware ignores their case.
function lower(o: Fields): Fields {
  return Object.fromEntries(Object.entries(o).map(([k, v]) => [k.toLowerCase(), v]));
}

// systemInfo returns the body of a check-in, in the firmware's order. It has no chip, flash or partitions, so that no
// firmware image fits.
export function systemInfo(f: Flash): string {
  return JSON.stringify({
    version: 2, language: locale(), flash_size: 0, minimum_free_heap_size: "0", mac_address: f.mac, uuid: f.uuid, chip_model_name: "browser",
    chip_info: { model: 0, cores: navigator.hardwareConcurrency || 1, revision: 0, features: 0 },
    application: { name: "perch-page", version, compile_time: "", idf_version: "", elf_sha256: "" },
    partition_table: [], ota: { label: "page" }, display: { monochrome: false, width: 320, height: 240 },
    board: { type: board, name: board, ssid: "", rssi: 0, channel: 0, ip: "", mac: f.mac },
  });
}
