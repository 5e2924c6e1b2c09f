package web

import "time"

// Link lets another device in, once.
type Link struct {
	URLs  []string  `json:"urls"` // the last is for this machine
	Until time.Time `json:"until"`
	QR    []string  `json:"qr"` // of the first URL: a row of 0 and 1 for each line, 1 is dark
}

// link makes a one-time link. Its code is behind a #, so that it is sent to no
// server and written into no log.
func (d *Server) link() (Link, error) {
	found := append(d.o.Addresses(), d.o.Own())
	code, until := d.newLink()
	l := Link{Until: until.UTC().Truncate(time.Second)}
	for _, one := range found {
		l.URLs = append(l.URLs, one+"/#/in/"+code)
	}
	rows, err := qrCode(l.URLs[0])
	l.QR = rows
	return l, err
}

// address is where this appliance is found: by browsers, and by robots.
func (d *Server) address() map[string][]string {
	all := map[string][]string{"url": {}, "ota": {}}
	for _, one := range d.o.Addresses() {
		all["url"] = append(all["url"], one+"/")
		all["ota"] = append(all["ota"], one+"/xiaozhi/ota/")
	}
	return all
}
