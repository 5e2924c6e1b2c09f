// What the robot in the page feels, as skins are told of it: a robot's own channel
// carries only the faces of its firmware. A page that may not know is not told,
// and its face stays as its robot's firmware has it.

import { moodOf, type StackChanFace } from "../face/face.js";
import { socketURL } from "../lib/api.js";
import { fieldsOf } from "./wire.js";

const againAfter = 5000;

export class Feelings {
  private socket: WebSocket | undefined;
  private timer = 0;

  constructor(private readonly face: () => StackChanFace | null) {}

  // follow tells the face of a robot until stop. One that was never let in is not asked again.
  follow(robot: string): void {
    this.stop();
    const socket = new WebSocket(socketURL("v1/vtuber/ws"));
    let inside = false;
    this.socket = socket;
    socket.onopen = () => {
      inside = true;
      socket.send(JSON.stringify({ type: "subscribe", events: ["mood"], session_ids: [`robot:${robot}`] }));
    };
    socket.onmessage = (e: MessageEvent<unknown>) => {
      if (typeof e.data === "string") this.take(e.data);
    };
    socket.onclose = () => {
      if (inside && this.socket === socket) this.timer = window.setTimeout(() => this.follow(robot), againAfter);
    };
  }

  stop(): void {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  private take(text: string): void {
    let frame: Record<string, unknown>;
    try {
      frame = fieldsOf(JSON.parse(text));
    } catch {
      return;
    }
    const face = this.face();
    if (!face) return;
    if (frame["type"] !== "mood") return;
    const mood = moodOf(frame);
    face.feels = mood && { ...mood, yaw: 0, lean: 0 }; // its servos do those
  }
}
