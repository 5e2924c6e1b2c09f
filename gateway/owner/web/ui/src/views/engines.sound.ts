// Sound for trying recognizers: any sound that the browser can decode is converted to a WAV file of 16-bit mono PCM with
// 16 kHz and at most 15 s.

const rate = 16_000;
export const longest = 15; // seconds

// recordable reports whether this page can use a microphone. Browsers allow it only in a secure context.
export function recordable(): boolean {
  return window.isSecureContext && typeof MediaRecorder !== "undefined" && !!navigator.mediaDevices?.getUserMedia;
}

// asWav converts a sound to a WAV file for recognizers.
export async function asWav(sound: Blob): Promise<Blob> {
  const bytes = await sound.arrayBuffer();
  // The browser resamples to the rate of the context.
  const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes);
  const length = Math.max(1, Math.min(decoded.length, longest * rate));
  const mixer = new OfflineAudioContext(1, length, rate);
  const source = mixer.createBufferSource();
  source.buffer = decoded;
  source.connect(mixer.destination);
  source.start();
  return wav((await mixer.startRendering()).getChannelData(0));
}

// wav returns a mono WAV file.
export function wav(samples: Float32Array): Blob {
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const text = (at: number, s: string) => [...s].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((s, i) => view.setInt16(44 + i * 2, Math.round(Math.max(-1, Math.min(1, s)) * 32767), true));
  return new Blob([view], { type: "audio/wav" });
}

// seconds returns the duration of a WAV file.
export async function seconds(file: Blob): Promise<number> {
  return (await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer())).duration;
}

// Recording is a recording in progress.
export class Recording {
  private readonly parts: Blob[] = [];
  private constructor(private readonly stream: MediaStream, private readonly recorder: MediaRecorder) {
    recorder.addEventListener("dataavailable", (e) => this.parts.push(e.data));
  }

  static async begin(): Promise<Recording> {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const recording = new Recording(stream, new MediaRecorder(stream));
    recording.recorder.start();
    return recording;
  }

  // end closes the microphone and returns the recording.
  end(): Promise<Blob> {
    return new Promise((resolve) => {
      this.recorder.addEventListener("stop", () => resolve(new Blob(this.parts, { type: this.recorder.mimeType })));
      this.recorder.stop();
      this.stream.getTracks().forEach((one) => one.stop());
    });
  }
}
