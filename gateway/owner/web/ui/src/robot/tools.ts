// The robot's tools, with the firmware's names and schemas.

import type { Argument, Tool, Values } from "./rpc.js";

// Body is the state that the tools read and change.
export interface Body {
  volume: number;
  brightness: number;
  theme: "light" | "dark";
  yaw: number;
  pitch: number;
  leds: string[];
  reminders: Reminders;
  photo(question: string): Promise<string>;
  systemInfo(): string;
  reboot(): void;
}

export interface Reminder {
  id: number;
  seconds: number;
  message: string;
  repeat: boolean;
  timer: number;
}

// Reminders ring even without a channel. A reboot deletes them.
export class Reminders {
  private all: Reminder[] = [];
  private last = 0;

  constructor(private readonly ring: (message: string) => void, private readonly changed: () => void) {}

  create(seconds: number, message: string, repeat: boolean): number {
    const r: Reminder = { id: ++this.last, seconds, message, repeat, timer: 0 };
    const due = () => {
      this.ring(message);
      if (!repeat) this.stop(r.id);
    };
    r.timer = repeat ? window.setInterval(due, seconds * 1000) : window.setTimeout(due, seconds * 1000);
    this.all.push(r);
    this.changed();
    return r.id;
  }

  stop(id: number): boolean {
    const r = this.all.find((one) => one.id === id);
    if (!r) return false;
    clearTimeout(r.timer);
    clearInterval(r.timer);
    this.all = this.all.filter((one) => one !== r);
    this.changed();
    return true;
  }

  get list(): readonly Reminder[] {
    return this.all;
  }

  clear(): void {
    for (const r of [...this.all]) this.stop(r.id);
  }
}

const keep = -9999; // the schema's minimum; leaves an angle unchanged

const integer = (name: string, fallback: number | undefined, ...limits: [number, number] | []): Argument => ({
  name, type: "integer", ...(fallback === undefined ? {} : { fallback }), ...(limits.length === 2 ? { limits } : {}),
});
const string = (name: string, fallback?: string): Argument => ({ name, type: "string", ...(fallback === undefined ? {} : { fallback }) });

const int = (v: Values, name: string): number => Number(v[name]);
const text = (v: Values, name: string): string => String(v[name]);

export function toolsOf(b: Body): Tool[] {
  return [...common(b), ...robot(b), ...forUsers(b)];
}

function common(b: Body): Tool[] {
  return [{
    name: "self.get_device_status", arguments: [],
    description: "Provides the real-time information of the device, including the current status of the audio speaker, screen, battery, network, " +
      "etc.\nUse this tool for: \n1. Answering questions about current condition (e.g. what is the current volume of the audio speaker?)\n" +
      "2. As the first step to control the device (e.g. turn up / down the volume of the audio speaker, etc.)",
    run: () => JSON.stringify({
      audio_speaker: { volume: b.volume }, screen: { brightness: b.brightness, theme: b.theme }, network: { type: "browser" },
    }),
  }, {
    name: "self.audio_speaker.set_volume", arguments: [integer("volume", undefined, 0, 100)],
    description: "Set the volume of the audio speaker. If the current volume is unknown, you must call `self.get_device_status` tool first and " +
      "then call this tool.",
    run: (v) => {
      b.volume = int(v, "volume");
      return "true";
    },
  }, {
    name: "self.screen.set_brightness", arguments: [integer("brightness", undefined, 0, 100)], description: "Set the brightness of the screen.",
    run: (v) => {
      b.brightness = int(v, "brightness");
      return "true";
    },
  }, {
    name: "self.screen.set_theme", arguments: [string("theme")], description: "Set the theme of the screen. The theme can be `light` or `dark`.",
    run: (v) => {
      const theme = text(v, "theme");
      if (theme !== "light" && theme !== "dark") return "false";
      b.theme = theme;
      return "true";
    },
  }, {
    name: "self.camera.take_photo", arguments: [string("question")],
    description: "Always remember you have a camera. If the user asks you to see something, use this tool to take a photo and then explain it.\n" +
      "Args:\n  `question`: The question that you want to ask about the photo.\nReturn:\n  A JSON object that provides the photo information.",
    run: (v) => b.photo(text(v, "question")),
  }];
}

const colours = (...limits: [number, number]): Argument[] => ["red", "green", "blue"].map((c) => integer(c, 0, ...limits));

// hex returns a colour as #rrggbb. most is the maximum of the arguments; for the firmware's LEDs it is 168.
function hex(v: Values, most: number): string {
  return "#" + ["red", "green", "blue"].map((c) => Math.round((int(v, c) / most) * 255).toString(16).padStart(2, "0")).join("");
}

function robot(b: Body): Tool[] {
  return [{
    name: "self.robot.get_head_angles", arguments: [],
    description: "Returns current yaw/pitch in degrees. Neutral position is {yaw:0, pitch:0}.",
    run: () => JSON.stringify({ yaw: b.yaw, pitch: b.pitch }),
  }, {
    name: "self.robot.set_head_angles", arguments: [integer("yaw", keep, keep, 128), integer("pitch", keep, keep, 90), integer("speed", 150, 100, 1000)],
    description: "Adjust head position. GUIDELINES: 1. For natural interaction, stay within +/- 45 degrees. 2. Only use values > 70 if the user " +
      "explicitly asks to look far away/behind. 3. Max ranges: Yaw(-128 to 128, -128 as your left), Pitch(0 to 90, 90 as your up). Speed(100-1000, " +
      "150 is natural).",
    run: (v) => {
      if (int(v, "yaw") !== keep) b.yaw = Math.max(-128, int(v, "yaw"));
      if (int(v, "pitch") !== keep) b.pitch = Math.max(0, int(v, "pitch"));
      return "true";
    },
  }, {
    name: "self.robot.set_led_color", arguments: colours(0, 168),
    description: "Set the color of the robot's INTERNAL onboard LED. This is NOT for room lights. Values: 0-168 (safe range). " +
      "Red=168,0,0; Green=0,168,0; Blue=0,0,168; White=100,100,100; Off=0,0,0.",
    run: (v) => {
      b.leds = Array<string>(12).fill(hex(v, 168));
      return "true";
    },
  }, {
    name: "self.robot.set_led_multi", arguments: [integer("index", undefined, 0, 11), ...colours(0, 255)],
    description: "Set a SINGLE pixel on the neon-ring without disturbing the others. Index 0-5 = left ring, 6-11 = right ring.",
    run: (v) => {
      b.leds = b.leds.map((c, i) => (i === int(v, "index") ? hex(v, 255) : c));
      return "true";
    },
  }, ...reminders(b)];
}

function reminders(b: Body): Tool[] {
  return [{
    name: "self.robot.create_reminder",
    arguments: [integer("duration_seconds", 60, 1, 86400), string("message", "Time's up!"), { name: "repeat", type: "boolean", fallback: false }],
    description: "Create a reminder. Duration is in seconds. Message is what to say when time is up. Set repeat to true to repeat the reminder.",
    run: (v) => String(b.reminders.create(int(v, "duration_seconds"), text(v, "message"), v["repeat"] === true)),
  }, {
    name: "self.robot.get_reminders", arguments: [], description: "Get list of active reminders.",
    run: () => JSON.stringify(b.reminders.list.map((r) => ({ id: r.id, duration_seconds: r.seconds, message: r.message, repeat: r.repeat }))),
  }, {
    name: "self.robot.stop_reminder", arguments: [integer("id", -1)], description: "Stop a reminder by ID.",
    run: (v) => String(b.reminders.stop(int(v, "id"))),
  }];
}

// forUsers returns the tools for programs of the user. The firmware's tools for upgrades and assets are missing.
function forUsers(b: Body): Tool[] {
  return [
    { name: "self.get_system_info", userOnly: true, arguments: [], description: "Get the system information", run: () => b.systemInfo() },
    { name: "self.reboot", userOnly: true, arguments: [], description: "Reboot the system", run: () => {
      b.reboot();
      return "true";
    } },
    { name: "self.screen.get_info", userOnly: true, arguments: [], description: "Information about the screen, including width, height, etc.",
      run: () => JSON.stringify({ width: 320, height: 240, monochrome: false }) },
  ];
}
