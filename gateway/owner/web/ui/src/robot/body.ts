// The body of the robot in the page: the state that its tools read and change.

import { CheckIn, systemInfo } from "./checkin.js";
import { picture, upload } from "./camera.js";
import type { Keeper } from "./flash.js";
import { Failure } from "./rpc.js";
import type { Speaker } from "./speaker.js";
import { Reminders, type Body } from "./tools.js";

const dark = "#000000";

export class PageBody implements Body {
  leds: string[] = Array<string>(12).fill(dark);
  readonly reminders: Reminders;
  lastPhoto: { url: string; drawn: boolean } | undefined;
  private head = { yaw: 0, pitch: 0 };
  private vision = { url: "", token: "" };

  constructor(
    private readonly keeper: Keeper,
    private readonly speaker: Speaker,
    private readonly checkIn: CheckIn,
    private readonly o: { changed: () => void; ring: (message: string) => void; reboot: () => void; drawnNote: () => string; signal: () => AbortSignal },
  ) {
    this.reminders = new Reminders(o.ring, o.changed);
    speaker.setVolume(this.volume);
  }

  get volume(): number { return this.keeper.flash.volume; }
  set volume(v: number) {
    this.keep({ volume: v });
    this.speaker.setVolume(v);
  }

  get brightness(): number { return this.keeper.flash.brightness; }
  set brightness(v: number) { this.keep({ brightness: v }); }

  get theme(): "light" | "dark" { return this.keeper.flash.theme; }
  set theme(v: "light" | "dark") { this.keep({ theme: v }); }

  get yaw(): number { return this.head.yaw; }
  set yaw(v: number) {
    this.head.yaw = Math.round(Math.min(128, Math.max(-128, v)));
    this.o.changed();
  }

  get pitch(): number { return this.head.pitch; }
  set pitch(v: number) {
    this.head.pitch = Math.round(Math.min(90, Math.max(0, v)));
    this.o.changed();
  }

  private keep(f: Partial<Keeper["flash"]>): void {
    Object.assign(this.keeper.flash, f);
    this.keeper.save();
    this.o.changed();
  }

  // see sets the address to which photos are sent. If that is on the page's own server, the page's base address is used
  // instead of the server's name.
  see(url: string, token: string): void {
    const own = this.checkIn.own && URL.canParse(url);
    const to = own ? new URL(new URL(url).pathname.replace(/^\//, "") + new URL(url).search, document.baseURI).href : url;
    this.vision = { url: to, token };
  }

  async photo(question: string): Promise<string> {
    if (!this.vision.url) throw new Failure("Image explain URL or token is not set");
    const taken = await picture(this.o.drawnNote());
    if (this.lastPhoto) URL.revokeObjectURL(this.lastPhoto.url);
    this.lastPhoto = { url: URL.createObjectURL(taken.jpeg), drawn: taken.drawn };
    this.o.changed();
    const f = this.keeper.flash;
    const headers: Record<string, string> = { "Device-Id": f.mac, "Client-Id": f.uuid };
    if (this.vision.token) headers["Authorization"] = `Bearer ${this.vision.token}`;
    try {
      return await upload(this.vision.url, taken.jpeg, question, headers, this.o.signal());
    } catch {
      throw new Failure("Failed to upload photo");
    }
  }

  systemInfo(): string {
    return systemInfo(this.keeper.flash);
  }

  reboot(): void {
    this.o.reboot();
  }

  // reset clears the state that a reboot clears.
  reset(): void {
    this.leds = Array<string>(12).fill(dark);
    this.head = { yaw: 0, pitch: 0 };
    this.vision = { url: "", token: "" };
    this.reminders.clear();
  }
}
