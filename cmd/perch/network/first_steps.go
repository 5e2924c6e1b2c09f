package network

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"perch/cmd/perch/listener"
	"perch/remote"
)

// firstSteps are what the owner does after the first start.
type firstSteps struct {
	name    string // base address by the appliance's name; empty where none can come by it
	numeric string // the same by this machine's address
	page    string // for a browser of this machine; empty where nothing answers
	flags   string // that lead another command to the same appliance
}

const otaPath = "/xiaozhi/ota/"

// String returns the steps as lines of text.
func (s firstSteps) String() string {
	var b strings.Builder
	switch {
	case s.name == "" && s.numeric == "":
		b.WriteString("No robot can come: only this machine reaches the addresses in listen.\n")
	case s.name == "" || s.numeric == "":
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", s.name+s.numeric+otaPath)
	default:
		fmt.Fprintf(&b, "Tell a robot this address once, as its Custom OTA URL:\n    %s\n", s.name+otaPath)
		fmt.Fprintf(&b, "or, where names that end in .local are not known, this one:\n    %s\n", s.numeric+otaPath)
	}
	if s.page != "" {
		fmt.Fprintf(&b, "In a browser of this machine:\n    %s\n", s.page)
		if s.name+s.numeric != "" {
			fmt.Fprintf(&b, "or, in any other, by the link that this prints:\n    perch open%s\n", s.flags)
		}
	}
	fmt.Fprintf(&b, "What works and what does not:\n    perch doctor%s\n", s.flags)
	return b.String()
}

// nameWithin is how long the first steps wait for the name, which is probed on the network
// before it is used.
const nameWithin = 5 * time.Second

// PrintFirstSteps writes the first steps once the name is known. flags lead another command to
// the same appliance.
func (n *Network) PrintFirstSteps(ctx context.Context, out io.Writer, flags string) {
	wait, cancel := context.WithTimeout(ctx, nameWithin)
	defer cancel()
	for n.announcer != nil && n.announcer.Status().By == "" {
		if remote.Sleep(wait, 100*time.Millisecond) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	page := pageURL(ctx, slices.Concat(n.o.Local, n.o.Listen))
	fmt.Fprint(out, firstSteps{name: n.URL(), numeric: n.numericURL(), page: page, flags: flags}) // a closed output loses it
}

// pageURL returns the address of the page for browsers of this machine, where one answers.
func pageURL(ctx context.Context, addresses []string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, address := range addresses {
		url := "http://" + listener.Dialable(address) + "/"
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			continue
		}
		answer, err := client.Do(request)
		if err != nil {
			continue
		}
		_ = answer.Body.Close() // nothing of it is read
		if answer.StatusCode == http.StatusOK && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			return url
		}
	}
	return ""
}
