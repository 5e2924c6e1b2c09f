// The latest 500 frames in both directions, with sizes and times, for the inspector.

export type Way = "out" | "in" | "note"; // from the robot, to the robot, or an event of the channel

export interface Frame {
  n: number; // number of the frame, from 1
  at: number; // milliseconds since 1970
  way: Way;
  kind: "text" | "sound" | "http" | "socket";
  bytes: number;
  text: string; // the text, shortened, or a description of the sound
}

export const mostFrames = 500;
const mostText = 4000;

export class Frames extends EventTarget {
  all: Frame[] = [];
  paused = false;
  private count = 0;

  add(way: Way, kind: Frame["kind"], text: string, bytes = new TextEncoder().encode(text).length): void {
    if (this.paused) return;
    this.all.push({ n: ++this.count, at: Date.now(), way, kind, bytes, text: blank(text).slice(0, mostText) });
    if (this.all.length > mostFrames) this.all.splice(0, this.all.length - mostFrames);
    this.dispatchEvent(new Event("change"));
  }

  clear(): void {
    this.all = [];
    this.dispatchEvent(new Event("change"));
  }

  // lines returns the frames as text for the clipboard.
  lines(): string {
    return this.all.map((f) => `${new Date(f.at).toISOString()} ${f.way.padEnd(4)} ${f.kind.padEnd(6)} ${f.bytes} B ${f.text}`).join("\n");
  }
}

// blank hides tokens, because users copy frames into bug reports.
function blank(text: string): string {
  return text.replace(/("token"\s*:\s*")[^"]+/g, "$1••••••").replace(/([?&]token=)[^&\s"]+/g, "$1••••••");
}
