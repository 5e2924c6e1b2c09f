package agent

import (
	"net"
	"net/http"
	"time"
)

// connectWithin is how long a server may take to let a brain in.
const connectWithin = 5 * time.Second

// NewTransport is how a brain reaches a server over HTTP: every wait and every
// store is bounded. Compression is off: it would hold pieces back, and a small
// body can hide a large one.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connectWithin, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    connectWithin,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}
