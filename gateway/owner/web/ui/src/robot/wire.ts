// Decoding of messages from servers, whose fields may be missing or have wrong types.

import type { Framing } from "./flash.js";

export type Fields = Record<string, unknown>;

// fieldsOf returns the fields of an object, and no fields for any other value.
export function fieldsOf(v: unknown): Fields {
  return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Fields) : {};
}

export function isFields(v: unknown): v is Fields {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

export function textOf(v: unknown): string | undefined {
  return typeof v === "string" ? v : undefined;
}

export function numberOf(v: unknown): number | undefined {
  return typeof v === "number" && Number.isFinite(v) ? v : undefined;
}

// parse decodes a message. A text that is not a JSON object has no fields.
export function parse(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}

// frame adds the header of a framing to a packet of Opus: none in framing 1, 16 bytes in framing 2, 4 in framing 3.
export function frame(f: Framing, packet: Uint8Array, timestamp = 0): Uint8Array<ArrayBuffer> {
  const head = f === 2 ? 16 : f === 3 ? 4 : 0;
  const out = new Uint8Array(head + packet.length);
  const view = new DataView(out.buffer);
  if (f === 2) {
    view.setUint16(0, 2);
    view.setUint32(8, timestamp);
    view.setUint32(12, packet.length);
  } else if (f === 3) {
    view.setUint16(2, packet.length);
  }
  out.set(packet, head);
  return out;
}

// unframe returns the packet in a frame, or undefined if the size in the header does not fit.
export function unframe(f: Framing, data: Uint8Array): { packet: Uint8Array; timestamp: number } | undefined {
  if (f === 1) return { packet: data, timestamp: 0 };
  const head = f === 2 ? 16 : 4;
  if (data.length < head) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const size = f === 2 ? view.getUint32(12) : view.getUint16(2);
  if (head + size > data.length) return undefined;
  return { packet: data.subarray(head, head + size), timestamp: f === 2 ? view.getUint32(8) : 0 };
}
