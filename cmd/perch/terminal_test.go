package main

import (
	"strings"
	"testing"
	"time"

	"perch/command"
	"perch/device"
)

// TestTitlesAndColourOnATerminalOnly checks that column titles are printed only on a terminal, and colours only on a
// terminal that supports them.
func TestTitlesAndColourOnATerminalOnly(t *testing.T) {
	list := robotList{Robots: []deviceLine{{ID: "a0b1c2d3e4f5", Board: "m5stack-stack-chan", Firmware: "2.2.4", Address: "192.168.1.20",
		Settings: device.Settings{Name: "kitchen"}, LastSeen: time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local), Adopted: true}}}
	const report = "1 fault, with its cure:\nFAIL  disk  full\n\nThe rest works:\nWARN  tls   old\nok    mqtt  works\n"
	var plain, titled strings.Builder
	list.write(&plain, command.Screen{})
	list.write(&titled, command.Screen{Terminal: true})
	const titles = "ROBOT         BOARD                    FIRMWARE ADDRESS         STATE         ADOPTED     LAST SEEN                 NAME\n"
	const robot = "a0b1c2d3e4f5  m5stack-stack-chan       2.2.4    192.168.1.20    not connected adopted     seen 2026-11-22 12:00:00  kitchen\n"
	if plain.String() != robot || titled.String() != titles+robot {
		t.Errorf("it prints\n%s\non a terminal\n%s", &plain, &titled)
	}
	if got := coloured(report, command.Screen{Terminal: true}); got != report {
		t.Errorf("without colour %q", got)
	}
	want := "1 fault, with its cure:\n\x1b[31mFAIL\x1b[m  disk  full\n\nThe rest works:\n\x1b[33mWARN\x1b[m  tls   old\n\x1b[32mok\x1b[m    mqtt  works\n"
	if got := coloured(report, command.Screen{Terminal: true, Colour: true}); got != want {
		t.Errorf("with colour %q", got)
	}
}
