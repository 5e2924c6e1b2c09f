package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"perch/cmd/perch/listener"
	"perch/remote"
)

// firstSteps holds the addresses in the text that each start prints for a new owner.
type firstSteps struct {
	name    string // the configured URL, or one with the appliance's name; empty if it is neither configured nor announced
	numeric string // base URL with this machine's IP address; empty if others cannot reach it, or if a URL is configured
	page    string // URL of the page for a browser on this machine; empty if the page is off
	link    string // URL that logs in a browser on this machine once; empty if others may read the text
	program string // how this user runs another command: "sudo perch" for the packaged service
	flags   string // flags with which other commands find the same appliance
}

// otaPath is the path of robots' check-ins.
const otaPath = "/xiaozhi/ota/"

// String returns the steps as lines of text.
func (s firstSteps) String() string {
	var b strings.Builder
	switch {
	case s.name == "" && s.numeric == "":
		b.WriteString("No robot can connect: only this machine reaches the addresses in listen.\n")
	case s.name == "" || s.numeric == "":
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", s.name+s.numeric+otaPath)
	default:
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", s.name+otaPath)
		fmt.Fprintf(&b, "or, where names that end in .local do not work, this one:\n    %s\n", s.numeric+otaPath)
	}
	if s.page != "" {
		fmt.Fprintf(&b, "Open the page in a browser on this machine:\n    %s\n", cmp.Or(s.link, s.page))
		if s.link != "" {
			fmt.Fprintf(&b, "This link lets you in once, within ten minutes. After that the page is at %s\n", s.page)
		}
		if s.name+s.numeric != "" {
			fmt.Fprintf(&b, "In any other browser, open the link that this command prints:\n    %s open%s\n", s.program, s.flags)
		}
	}
	fmt.Fprintf(&b, "See what works and what does not:\n    %s doctor%s\n", s.program, s.flags)
	return b.String()
}

// nameTimeout is how long PrintFirstSteps waits for the appliance's name. Probing the network for
// a conflict takes about a second.
const nameTimeout = 5 * time.Second

// PrintFirstSteps writes the first steps when the appliance's name is announced, but after nameTimeout at the
// latest, and at once if no name is to be announced. It writes nothing if ctx ends before.
// flags are the flags with which other commands find the same appliance. link returns a URL that logs in
// a browser on this machine once; link is nil if out is not a terminal, because others may read a log.
func (n *Network) PrintFirstSteps(ctx context.Context, out io.Writer, flags string, link func() string) {
	wait, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	for n.announcer != nil && n.announcer.Status().By == "" {
		if remote.Sleep(wait, 100*time.Millisecond) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	s := firstSteps{name: n.URL(), numeric: n.numericURL(), program: "perch", flags: flags}
	switch {
	case os.Getenv("STATE_DIRECTORY") != "": // set by systemd for the packaged service, and in the container
		s.program = "sudo perch"
	case link != nil: // a person has started the program in a terminal, with this name
		s.program = os.Args[0]
	}
	if addresses := slices.Concat(n.o.Local, n.o.Listen); n.o.Page && len(addresses) > 0 {
		s.page = "http://" + listener.Dialable(addresses[0]) + "/"
		if link != nil {
			s.link = link()
		}
	}
	fmt.Fprint(out, s) // errors are ignored
}
