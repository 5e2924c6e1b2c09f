// The microphone: 60 ms of sound at 16 kHz become a packet of Opus. Browsers allow it only in a secure context: https,
// or localhost.

import type { OpusEncoderHandle } from "libopus-wasm";
import { encoder, listenRate, packetMs } from "./codec.js";

// Deaf is the error if the microphone cannot be used.
export class Deaf extends Error {
  constructor(readonly why: "insecure" | "denied" | "missing" | "broken") {
    super(why);
  }
}

export const canHear = (): boolean => window.isSecureContext && !!navigator.mediaDevices?.getUserMedia;

export class Microphone {
  loudness = 0; // RMS of the latest block
  private context: AudioContext | undefined;
  private stream: MediaStream | undefined;
  private opus: OpusEncoderHandle | undefined;
  private resampler: Resampler | undefined;
  private frame = new Float32Array((listenRate * packetMs) / 1000);
  private filled = 0;
  private packet: ((p: Uint8Array) => void) | undefined;
  private ready: Promise<void> | undefined;

  // prepare requests access to the microphone. Later calls return the same promise, unless it has failed.
  prepare(): Promise<void> {
    this.ready ??= this.connect().catch((e: unknown) => {
      this.ready = undefined;
      this.release();
      throw e;
    });
    return this.ready;
  }

  // start calls packet with each packet until stop is called.
  start(packet: (p: Uint8Array) => void): void {
    this.filled = 0;
    this.packet = packet;
  }

  stop(): void {
    this.packet = undefined;
    this.loudness = 0;
  }

  get isOpen(): boolean {
    return this.packet !== undefined;
  }

  // release closes the microphone.
  release(): void {
    this.stop();
    for (const t of this.stream?.getTracks() ?? []) t.stop();
    void this.context?.close();
    this.opus?.free();
    this.stream = this.context = this.opus = this.ready = undefined;
  }

  private async connect(): Promise<void> {
    if (!canHear()) throw new Deaf("insecure");
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
      });
    } catch (e) {
      const name = e instanceof DOMException ? e.name : "";
      throw new Deaf(name === "NotFoundError" ? "missing" : name === "NotAllowedError" ? "denied" : "broken");
    }
    this.opus = await encoder();
    const input = this.input(this.stream);
    const context = this.context!;
    this.resampler = new Resampler(context.sampleRate, listenRate);
    await context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url).href);
    const tap = new AudioWorkletNode(context, "tap", { numberOfInputs: 1, numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    tap.port.onmessage = (e: MessageEvent<Float32Array>) => this.take(e.data);
    input.connect(tap);
    await context.resume();
  }

  // input connects the stream. Firefox requires a context with the rate of the microphone, so the samples are then
  // converted.
  private input(stream: MediaStream): MediaStreamAudioSourceNode {
    this.context = new AudioContext({ sampleRate: listenRate });
    try {
      return this.context.createMediaStreamSource(stream);
    } catch {
      void this.context.close();
      this.context = new AudioContext();
      return this.context.createMediaStreamSource(stream);
    }
  }

  private take(block: Float32Array): void {
    if (!this.packet) return;
    let sum = 0;
    for (const s of block) sum += s * s;
    this.loudness = Math.sqrt(sum / block.length);
    for (const s of this.resampler!.convert(block)) {
      this.frame[this.filled++] = s;
      if (this.filled < this.frame.length) continue;
      this.filled = 0;
      this.packet?.(this.opus!.encodeFloat(this.frame).slice());
    }
  }
}

// Resampler converts the sample rate by linear interpolation, after a moving average over the length of a new sample.
// That is good enough for speech.
export class Resampler {
  private readonly step: number;
  private at = 0; // position of the next new sample, in old samples after last
  private last = 0;

  constructor(from: number, to: number) {
    this.step = from / to;
  }

  convert(block: Float32Array): Float32Array {
    if (this.step === 1) return block;
    const smooth = this.smooth(block);
    const out: number[] = [];
    for (; this.at < smooth.length; this.at += this.step) {
      const i = Math.floor(this.at);
      const before = i === 0 ? this.last : smooth[i - 1]!;
      out.push(before + (smooth[i]! - before) * (this.at - i));
    }
    this.at -= smooth.length;
    this.last = smooth.at(-1) ?? this.last;
    return Float32Array.from(out);
  }

  private tail = new Float32Array(0);
  private smooth(block: Float32Array): Float32Array {
    const width = Math.max(1, Math.round(this.step));
    const all = new Float32Array(this.tail.length + block.length);
    all.set(this.tail);
    all.set(block, this.tail.length);
    const out = new Float32Array(block.length);
    for (let i = 0; i < block.length; i++) {
      let sum = 0;
      let n = 0;
      for (let k = 0; k < width; k++) {
        const j = i + this.tail.length - k;
        if (j < 0) break;
        sum += all[j]!;
        n++;
      }
      out[i] = sum / n;
    }
    this.tail = block.slice(Math.max(0, block.length - width + 1));
    return out;
  }
}
