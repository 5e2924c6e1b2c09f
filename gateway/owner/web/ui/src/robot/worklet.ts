// The microphone's part in the audio thread: it sends blocks of 20 ms to the page. A worklet must be a separate script
// without imports from the page.

interface Port {
  postMessage(message: unknown, transfer: Transferable[]): void;
}
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: Port;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

class Tap extends AudioWorkletProcessor {
  private block = new Float32Array(Math.round(sampleRate / 50));
  private filled = 0;

  process(inputs: Float32Array[][]): boolean {
    const samples = inputs[0]?.[0];
    if (!samples) return true;
    for (let at = 0; at < samples.length; ) {
      const n = Math.min(samples.length - at, this.block.length - this.filled);
      this.block.set(samples.subarray(at, at + n), this.filled);
      this.filled += n;
      at += n;
      if (this.filled === this.block.length) {
        this.port.postMessage(this.block, [this.block.buffer]);
        this.block = new Float32Array(Math.round(sampleRate / 50));
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("tap", Tap);

export {};
