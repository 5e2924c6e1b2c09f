// The speaker plays packets of Opus without gaps. Each packet is scheduled at the end of the packet before it, so the
// browser's audio thread plays on while the page is busy. This needs no worklet, so it also works on plain http.

import type { OpusDecoderHandle } from "libopus-wasm";
import { decoder, speakRate } from "./codec.js";

const lead = 0.15; // delay in seconds before the first sound, and after a gap
const mostAhead = 24; // maximum seconds of scheduled sound; a robot has 2.4
const settle = 0.02; // minimum seconds from now to the start of a scheduled sound

export interface Played {
  packets: number;
  seconds: number;
  gaps: number; // number of interruptions because packets arrived late
  dropped: number;
  bad: number;
  rms: number; // RMS of the decoded sound, 0 to 1
}

export class Speaker {
  readonly played: Played = { packets: 0, seconds: 0, gaps: 0, dropped: 0, bad: 0, rms: 0 };
  analyser: AnalyserNode | undefined;
  private context: AudioContext | undefined;
  private gain: GainNode | undefined;
  private opus: OpusDecoderHandle | undefined;
  private loading: Promise<void> | undefined;
  private waiting: Uint8Array[] = []; // packets that arrived before the decoder was loaded
  private sources = new Set<AudioBufferSourceNode>();
  private until = 0; // end of the scheduled sound, as a time of context
  private power = 0;
  private volume = 70;

  // wake enables sound, which browsers allow only in the handler of a click or key. It returns whether sound is enabled.
  async wake(): Promise<boolean> {
    this.context ??= this.connect();
    this.loading ??= decoder().then((d) => void (this.opus = d));
    if (this.context.state !== "running") {
      await Promise.race([this.context.resume(), new Promise((r) => setTimeout(r, 500))]);
    }
    return this.context.state === "running";
  }

  get silenced(): boolean {
    return this.context?.state !== "running";
  }

  private connect(): AudioContext {
    const context = new AudioContext({ sampleRate: speakRate, latencyHint: "interactive" });
    this.gain = context.createGain();
    this.analyser = context.createAnalyser();
    this.analyser.fftSize = 1024;
    this.analyser.connect(this.gain).connect(context.destination);
    this.setVolume(this.volume);
    return context;
  }

  // setVolume sets the volume, 0 to 100. The gain is the square, so that 50 sounds half as loud.
  setVolume(v: number): void {
    this.volume = v;
    if (this.gain && this.context) this.gain.gain.setTargetAtTime((v / 100) ** 2, this.context.currentTime, 0.02);
  }

  // push plays a packet after the packets before it.
  push(packet: Uint8Array): void {
    if (!this.context || !this.opus) {
      this.waiting.push(packet.slice());
      void this.wake().then(() => this.loading).then(() => this.flush());
      return;
    }
    this.flush();
    this.play(packet);
  }

  private flush(): void {
    if (!this.opus) return;
    for (const p of this.waiting.splice(0)) this.play(p);
  }

  private play(packet: Uint8Array): void {
    const context = this.context!;
    if (context.state !== "running") { // the context's clock stands still, so nothing would be played
      this.played.dropped++;
      return;
    }
    let pcm: Float32Array;
    try {
      pcm = this.opus!.decodeFloat(packet);
    } catch {
      this.played.bad++;
      return;
    }
    const now = context.currentTime;
    if (this.until - now > mostAhead) {
      this.played.dropped++;
      return;
    }
    if (this.until < now + settle) {
      if (this.until > 0 && this.speaking) this.played.gaps++;
      this.until = Math.ceil((now + lead) * speakRate) / speakRate;
    }
    this.speaking = true;
    this.schedule(pcm);
  }
  private speaking = false; // since the last reset

  private schedule(pcm: Float32Array): void {
    const buffer = this.context!.createBuffer(1, pcm.length, speakRate);
    buffer.copyToChannel(new Float32Array(pcm), 0);
    const source = this.context!.createBufferSource();
    source.buffer = buffer;
    source.connect(this.analyser!);
    source.start(this.until);
    source.onended = () => {
      this.sources.delete(source);
      source.disconnect();
    };
    this.sources.add(source);
    this.until = Math.round(this.until * speakRate + pcm.length) / speakRate;
    const p = this.played;
    p.packets++;
    p.seconds += pcm.length / speakRate;
    for (const s of pcm) this.power += s * s;
    p.rms = Math.sqrt(this.power / (p.seconds * speakRate));
  }

  // reset stops the sound, and discards waiting packets.
  reset(): void {
    for (const s of this.sources) {
      s.onended = null;
      s.stop();
      s.disconnect();
    }
    this.sources.clear();
    this.waiting = [];
    this.until = 0;
    this.speaking = false;
  }

  // drained resolves when everything has been played.
  async drained(): Promise<void> {
    this.speaking = false;
    if (this.waiting.length > 0) await this.loading;
    this.flush();
    const left = this.context && this.context.state === "running" ? this.until - this.context.currentTime : 0;
    if (left > 0) await new Promise((r) => setTimeout(r, left * 1000));
  }

  // chime plays tones for alerts and reminders.
  async chime(tones: number[]): Promise<void> {
    if (!(await this.wake())) return;
    const context = this.context!;
    tones.forEach((hz, i) => {
      const at = context.currentTime + 0.05 + i * 0.16;
      const tone = context.createOscillator();
      const shape = context.createGain();
      tone.frequency.value = hz;
      shape.gain.setValueAtTime(0, at);
      shape.gain.linearRampToValueAtTime(0.25, at + 0.015);
      shape.gain.exponentialRampToValueAtTime(0.001, at + 0.35);
      tone.connect(shape).connect(this.gain!);
      tone.start(at);
      tone.stop(at + 0.4);
    });
  }
}
