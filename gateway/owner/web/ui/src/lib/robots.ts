// A robot as the server shows it: admin.Device.

import type { Status } from "./board.js";

export interface Device {
  id: string;
  mac: string;
  name?: string;
  persona?: string;
  character?: string;
  voice?: string;
  brain?: string;
  language?: string;
  transport?: string;
  transport_given?: string;
  board?: string;
  firmware?: string;
  address?: string;
  last_seen: string;
  adopted: boolean;
  waiting?: string;
  claimed?: boolean;
  claimants?: Claimant[];
  code?: string;
  connected: boolean;
  talking: boolean;
  state: string;
  emotion: string;
  senses?: string[];
  tools?: string[];
  status?: Status;
}

// Claimant is a client that names itself by a robot's MAC: device.Claimant.
export interface Claimant {
  client: string; // its Client-Id; empty where it sends none
  address: string;
  at: string;
  bound: boolean;
}

// nameOf is what a robot is called by.
export function nameOf(d: { name?: string; id: string }): string {
  return d.name || d.id;
}

// linkTo is the address of a robot's view.
export function linkTo(id: string): string {
  return `#/robots/${encodeURIComponent(id)}`;
}
