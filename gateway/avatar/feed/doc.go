// Package feed renders the agents' activity for everything that shows them: skins that
// connect to the server, and avatar programs that the appliance connects to. Its frames
// are those of Tier-2 of the VTuber adapter's RFC, and extensions; see docs/skins.md.
//
// Frames are rendered once for all viewers, from the board and the bus. A slow viewer
// delays no other: its outbox is bounded, and discards outdated frames.
package feed
