// Opus, loaded when sound is first needed: it is larger than the rest of the page.

import type { OpusDecoderHandle, OpusEncoderHandle } from "libopus-wasm";

export const listenRate = 16000; // of the microphone
export const speakRate = 24000; // of the speaker; the decoder converts what was encoded at another
export const packetMs = 60;

const library = () => import("libopus-wasm");

// encoder is the firmware's: 60 ms, variable bit rate, little work.
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
