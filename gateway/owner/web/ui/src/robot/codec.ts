// Opus. The library is loaded only when sound is needed, because it is larger than the rest of the page.

import type { OpusDecoderHandle, OpusEncoderHandle } from "libopus-wasm";

export const listenRate = 16000; // Hz, of the microphone
export const speakRate = 24000; // Hz, of the speaker; the decoder converts other rates
export const packetMs = 60;

const library = () => import("libopus-wasm");

// encoder returns an encoder with the firmware's settings: 60 ms, variable bit rate, low complexity.
export async function encoder(): Promise<OpusEncoderHandle> {
  const opus = await library();
  return opus.createEncoder({
    sampleRate: listenRate, channels: 1, application: opus.Application.Voip, frameSize: (listenRate * packetMs) / 1000, complexity: 3, vbr: true,
  });
}

export async function decoder(): Promise<OpusDecoderHandle> {
  const opus = await library();
  return opus.createDecoder({ sampleRate: speakRate, channels: 1 });
}
