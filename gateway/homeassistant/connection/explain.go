package connection

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// explain turns the error of a connection attempt into one sentence with its remedy. The broker's
// address, host and port, holds no user and no password.
func explain(err error, at, clientID string) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return fmt.Errorf("the broker at %s refuses the user name or the password; check mqtt.user and mqtt.password", at)
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return fmt.Errorf("the broker at %s refuses the client id %s; let it in", at, clientID)
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return fmt.Errorf("the broker at %s refuses connections now; look at its own log", at)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of the broker at %s is signed by an unknown authority; give its authority's certificate as mqtt.ca", at)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of the broker at %s is for another name; write that name in mqtt.broker", at)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of the broker at %s cannot be used; check its dates and the clock", at)
	case errors.As(err, &record):
		return fmt.Errorf("what answers at %s does not speak TLS; use mqtt:// or the port for TLS", at)
	case errors.As(err, &dns):
		host, _, _ := net.SplitHostPort(at) // explain's caller has joined them
		return fmt.Errorf("no machine in the network has the name %s; check mqtt.broker", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; start the broker or correct mqtt.broker", at)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("there is no way to %s; check mqtt.broker and the network", at)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("nothing answers at %s within %s; check mqtt.broker and the broker", at, connectTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("what answers at %s closes the connection at once; it may be no MQTT broker, or one that wants TLS", at)
	}
	return fmt.Errorf("connect to the broker at %s: %s", at, strings.ReplaceAll(err.Error(), "\n", " "))
}
