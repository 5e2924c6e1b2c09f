// Package feed turns events and agent states into frames for viewers: skins that connect to
// the server, and avatar programs that the appliance connects to. The frames are those of
// Tier-2 of the VTuber adapter's RFC, plus extensions; see docs/skins.md.
//
// Each frame is made once for all viewers, from agent.Board and event.Bus. A slow viewer does
// not delay the others: its outbox is bounded, and discards outdated frames.
package feed
