package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"perch/child"
	"perch/gateway/owner/web"
)

func openCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "open",
		Short: "Let a browser in: print a link to the page that works once, and open it",
		Long: `The link is for a browser on any device of this network, without the admin token. It works once, within ten minutes. In a
terminal it is also drawn as a QR code, for a phone; where this machine has a screen, it is opened there.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var l web.Link
			return r.ask(c, http.MethodPost, "/api/v1/link", nil, &l, func(out io.Writer) {
				f, is := c.OutOrStdout().(*os.File)
				terminal := is && isTerminal(f)
				fmt.Fprintln(out, strings.Join(l.URLs, "\n"))
				if terminal {
					fmt.Fprint(f, drawQR(l.QR))
				}
				fmt.Fprintf(out, "It works once, until %s.\n", l.Until.Local().Format("15:04"))
				if last := len(l.URLs) - 1; terminal && onScreen() && last >= 0 && isPage(l.URLs[last]) {
					browser := exec.CommandContext(c.Context(), "xdg-open", l.URLs[last])
					browser.Env = child.Environ(os.Environ())
					_ = browser.Run() // without a browser there is still the link
				}
			})
		},
	})
}

// isPage reports whether an address is a web page's. xdg-open may give any other to any program
// of this machine.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// onScreen reports whether a browser opened here can be seen.
func onScreen() bool { return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" }

// quietZone is the margin of a QR code, in modules: ISO/IEC 18004 asks for four; for a screen two
// are enough.
const quietZone = 2

// drawQR draws a QR code of rows of 0 and 1, two rows a line. It sets the colours, dark on light,
// because a terminal may have either.
func drawQR(rows []string) string {
	dark := func(x, y int) bool {
		y, x = y-quietZone, x-quietZone
		return y >= 0 && y < len(rows) && x >= 0 && x < len(rows[y]) && rows[y][x] == '1'
	}
	var b strings.Builder
	for y := 0; y < len(rows)+2*quietZone; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := range len(rows) + 2*quietZone {
			switch up, down := dark(x, y), dark(x, y+1); {
			case up && down:
				b.WriteString("█")
			case up:
				b.WriteString("▀")
			case down:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
