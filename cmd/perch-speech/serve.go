package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"perch/gateway/mdns"
	wire "perch/voice/wyoming"
)

func serveCommand() *cobra.Command {
	var flags modelFlags
	var address string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the Wyoming server",
		Long: `The protocol has no password: only programs on this machine can use the server, unless --listen says otherwise. With --listen :10310 everybody
on the network can use it, and it announces itself, so that Perch and Home Assistant find it.`,
		Example: `perch-speech serve
			perch-speech serve --listen :10310 --threads 2`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			return serve(c, flags, l.(*net.TCPListener)) // net.Listen returns this type for TCP
		},
	}
	c.Flags().StringVar(&address, "listen", wire.PerchSpeech, "TCP `ADDRESS` to listen at")
	return flags.registerAll(c)
}

// serve runs the server until the command's context ends. Unless the server listens on a loopback address only, serve
// announces it by mDNS.
func serve(c *cobra.Command, flags modelFlags, l *net.TCPListener) error {
	defer l.Close()
	log := newLog(c)
	address := l.Addr().(*net.TCPAddr) // as for every TCP listener
	log.Info("perch-speech serves", "address", "tcp://"+address.String(), "models", string(flags.models()))
	ctx := c.Context()
	announced := make(chan error, 1)
	go func() {
		if address.IP.IsLoopback() {
			announced <- nil
			return
		}
		announced <- mdns.New(mdns.Options{Name: "perch-speech", ID: machineID(), Version: version, Wyoming: address.Port, Log: log}).Run(ctx)
	}()
	s := supervisor{folder: flags.models(), threads: flags.threads, listener: l, stderr: c.ErrOrStderr(), log: log}
	s.run(ctx)
	return <-announced
}

// machineID returns an ID of this machine: six hexadecimal digits that differ between machines and stay the same
// after a restart.
func machineID() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		name, _ := os.Hostname() // without a name, all such machines have the same ID
		id = []byte(name)
	}
	sum := sha256.Sum256(append(id, "perch-speech"...)) // machine-id(5) asks to keep the ID itself secret
	return hex.EncodeToString(sum[:3])
}
