// The stored state of the robot in the page: its identity, its settings and its server. A real robot stores it in its
// flash memory, the page in the browser.

import { keep, kept, pageRobot as key } from "../lib/store.js";

export type Mode = "auto" | "manual" | "realtime";
export type Framing = 1 | 2 | 3;

export interface Flash {
  mac: string;
  uuid: string;
  volume: number; // 0 to 100
  brightness: number; // 0 to 100
  theme: "light" | "dark";
  mode: Mode;
  framing: Framing | 0; // 0 for the server's choice
  ota: string; // address of another server; "" for the page's server
  websocket: { url: string; token: string; version: number };
}

export class Keeper {
  readonly flash: Flash;

  constructor() {
    this.flash = { ...fresh(), ...read() };
    this.save();
  }

  save(): void {
    keep(key, JSON.stringify(this.flash)); // without storage, this is a new robot at the next start
  }

  // erase replaces the identity: this is then a new robot.
  erase(): void {
    Object.assign(this.flash, fresh());
    this.save();
  }
}

function fresh(): Flash {
  return {
    mac: newMAC(), uuid: newUUID(), volume: 70, brightness: 80, theme: "dark", mode: "auto", framing: 0, ota: "",
    websocket: { url: "", token: "", version: 1 },
  };
}

function read(): Partial<Flash> {
  try {
    const f: unknown = JSON.parse(kept(key) ?? "{}");
    if (typeof f !== "object" || f === null) return {};
    const known = f as Partial<Flash>;
    return /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(known.mac ?? "") && typeof known.uuid === "string" ? known : {};
  } catch {
    return {};
  }
}

const hex = (bytes: Uint8Array): string[] => Array.from(bytes, (b) => b.toString(16).padStart(2, "0"));

// newMAC returns a locally administered address (IEEE 802, bit 1 of the first byte), which no manufacturer assigns.
function newMAC(): string {
  const b = crypto.getRandomValues(new Uint8Array(6));
  b[0] = (b[0]! & 0xfc) | 0x02;
  return hex(b).join(":");
}

// newUUID returns a random UUID (RFC 9562, version 4). crypto.randomUUID does not exist in pages from plain http.
function newUUID(): string {
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6]! & 0x0f) | 0x40;
  b[8] = (b[8]! & 0x3f) | 0x80;
  return hex(b).join("").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
