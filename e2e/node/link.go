package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// link is a pair of network devices that joins this machine and a node. Addresses
// come from 198.18.0.0/15, which RFC 2544 keeps for tests of networks, so that they
// are nobody's. Each node on this machine has a number and ranges of its own.
type link struct {
	number int
	// index is the kernel's for this machine's end. It is never used again, as the
	// number may be once the node's network namespace has gone, and the device with it.
	index int
}

const maxNodes = 256

// device is this machine's end. It is also what reserves the number: the kernel
// makes no second one of the same name.
func (l link) device() string      { return fmt.Sprintf("%s%d", devicePrefix, l.number) }
func (l link) hostAddress() string { return fmt.Sprintf("198.18.%d.1", l.number) }
func (l link) nodeAddress() string { return fmt.Sprintf("198.18.%d.2", l.number) }
func (l link) pods() string        { return fmt.Sprintf("198.19.%d.0/24", l.number) }

const (
	devicePrefix = "syncpass"
	// nodeDevice is the node's end.
	nodeDevice = "eth0"
)

// newLink joins this machine with the network namespace of a process.
func newLink(ctx context.Context, pid int) (l link, err error) {
	for ; l.number < maxNodes; l.number++ {
		if _, err := net.InterfaceByName(l.device()); err == nil {
			continue
		}
		err = runCommand(ctx, nil, "ip", "link", "add", l.device(), "type", "veth", "peer", "name", nodeDevice, "netns", fmt.Sprint(pid))
		if err == nil {
			break
		}
		// Another process may have taken the number in the meantime.
		if !strings.Contains(err.Error(), "File exists") {
			return l, err
		}
	}
	if l.number == maxNodes {
		return l, fmt.Errorf("there are %d nodes on this machine already", maxNodes)
	}
	device, err := net.InterfaceByName(l.device())
	if err != nil {
		return l, err
	}
	l.index = device.Index
	defer func() {
		if err != nil {
			err = errors.Join(err, l.remove())
		}
	}()
	inside := fmt.Sprintf("link set lo up\naddr add %s/30 dev %s\nlink set %s up\nroute add default via %s\n",
		l.nodeAddress(), nodeDevice, nodeDevice, l.hostAddress())
	err = runCommand(ctx, strings.NewReader(inside), "nsenter", "--target", fmt.Sprint(pid), "--net", "ip", "-batch", "-")
	if err != nil {
		return l, err
	}
	// The route lets the API server reach Pods, for its proxy subresource.
	outside := fmt.Sprintf("addr add %s/30 dev %s\nlink set %s up\nroute add %s via %s\n",
		l.hostAddress(), l.device(), l.device(), l.pods(), l.nodeAddress())
	return l, runCommand(ctx, strings.NewReader(outside), "ip", "-batch", "-")
}

// remove takes the link down, and with it its addresses and routes. The kernel does
// so, too, some time after the node's network namespace has gone.
func (l link) remove() error {
	if !l.exists() {
		return nil
	}
	err := runCommand(context.Background(), nil, "ip", "link", "delete", l.device())
	if err != nil && l.exists() {
		return err
	}
	return nil
}

func (l link) exists() bool {
	device, err := net.InterfaceByIndex(l.index)
	return err == nil && device.Name == l.device()
}
