// The channel: the WebSocket of one conversation.

import type { Flash, Framing } from "./flash.js";
import type { Frames } from "./frames.js";
import { frame, parse, textOf, unframe, type Fields } from "./wire.js";

const helloWithin = 10_000; // ms until the WebSocket is open, and again until the server's hello
const staleAfter = 120_000; // ms without a message

export interface Handlers {
  text(m: Fields): void;
  sound(packet: Uint8Array): void;
  closed(): void;
}

// Unopened is the error if the channel could not be opened.
export class Unopened extends Error {
  constructor(readonly why: "socket" | "hello" | "address") {
    super(why);
  }
}

export class Channel {
  session = "";
  private socket: WebSocket | undefined;
  private heard = 0; // time of the latest message, as of performance.now

  constructor(private readonly frames: Frames, private readonly framing: Framing, private readonly on: Handlers) {}

  // open connects and sends hello. A page cannot set headers, so their values are in the query of the address.
  async open(address: string, f: Flash): Promise<void> {
    let url: URL;
    try {
      url = new URL(address);
    } catch {
      throw new Unopened("address");
    }
    const query = { "device-id": f.mac, "client-id": f.uuid, "protocol-version": String(this.framing), ...(f.websocket.token ? { token: f.websocket.token } : {}) };
    for (const [k, v] of Object.entries(query)) url.searchParams.set(k, v);
    this.frames.add("note", "socket", `open ${url.href}`, 0);
    await this.connect(url.href);
    const welcomed = this.welcome();
    this.send({ type: "hello", version: this.framing, features: { mcp: true }, transport: "websocket",
      audio_params: { format: "opus", sample_rate: 16000, channels: 1, frame_duration: 60 } });
    await welcomed;
  }

  private connect(url: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let socket: WebSocket;
      try {
        socket = new WebSocket(url);
      } catch {
        reject(new Unopened("address"));
        return;
      }
      socket.binaryType = "arraybuffer";
      this.socket = socket;
      const late = setTimeout(() => this.fail(reject, "socket"), helloWithin);
      socket.onopen = () => {
        clearTimeout(late);
        resolve();
      };
      socket.onerror = () => {
        clearTimeout(late);
        this.fail(reject, "socket");
      };
    });
  }

  private fail(reject: (e: Error) => void, why: Unopened["why"]): void {
    this.drop();
    reject(new Unopened(why));
  }

  private welcome(): Promise<void> {
    const socket = this.socket!;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.fail(reject, "hello"), helloWithin);
      socket.onclose = (e) => {
        clearTimeout(late);
        this.frames.add("note", "socket", `closed ${e.code} ${e.reason}`.trim(), 0);
        reject(new Unopened("hello"));
        if (this.socket === socket) {
          this.socket = undefined;
          this.on.closed();
        }
      };
      socket.onerror = null;
      socket.onmessage = (e: MessageEvent<string | ArrayBuffer>) => {
        this.heard = performance.now();
        if (typeof e.data !== "string") {
          this.arrived(new Uint8Array(e.data));
          return;
        }
        this.frames.add("in", "text", e.data);
        const m = parse(e.data);
        if (m["type"] !== "hello") {
          this.on.text(m);
        } else if (m["transport"] === "websocket") {
          clearTimeout(late);
          this.session = textOf(m["session_id"]) ?? this.session;
          resolve();
        }
      };
    });
  }

  private arrived(data: Uint8Array): void {
    const sound = unframe(this.framing, data);
    this.frames.add("in", "sound", sound ? about(sound.packet) : "size that does not fit", data.length);
    if (sound) this.on.sound(sound.packet);
  }

  get isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  // isStale reports whether nothing was received for so long that the firmware would consider the channel broken.
  get isStale(): boolean {
    return performance.now() - this.heard > staleAfter;
  }

  // send sends a message. As in the firmware, all messages except hello begin with the session.
  send(m: Fields): void {
    if (!this.isOpen) return;
    const text = JSON.stringify(m["type"] === "hello" ? m : { session_id: this.session, ...m });
    this.frames.add("out", "text", text);
    this.socket?.send(text);
  }

  sendSound(packet: Uint8Array): void {
    if (!this.isOpen) return;
    const data = frame(this.framing, packet);
    this.frames.add("out", "sound", about(packet), data.length);
    this.socket?.send(data);
  }

  // drop closes the channel.
  drop(): void {
    const socket = this.socket;
    this.socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onerror = null;
    socket.close();
  }
}


// about describes a packet by its first byte (RFC 6716 section 3.1).
function about(packet: Uint8Array): string {
  const toc = packet[0];
  if (toc === undefined) return "Opus, empty";
  const config = toc >> 3;
  const ms = config < 12 ? [10, 20, 40, 60][config & 3]! : config < 16 ? [10, 20][config & 1]! : [2.5, 5, 10, 20][config & 3]!;
  const code = toc & 3;
  const count = code === 0 ? 1 : code < 3 ? 2 : (packet[1] ?? 0) & 63;
  return `Opus, ${ms * count} ms`;
}
