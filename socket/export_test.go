package socket

import (
	"context"
	"net"
)

// DialOver is Dial over the given connection.
func DialOver(ctx context.Context, c net.Conn, url string, o Options) (*Conn, error) {
	return dial(ctx, url, o, func(context.Context, string, string) (net.Conn, error) { return c, nil })
}
