// Copyright: (c) 2026, holdfast.kubernetes contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// The part of a CSI driver that works on a real node: it registers with the kubelet and mounts volumes. A volume is a
// directory on the node's own disk, so it is empty on the next node. Attaching is not its business: see attacher.py.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	kubelet = "/var/lib/kubelet"
	disk    = "/var/lib/lab-volumes"
)

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	name, node, socket string
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: d.name, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(
	_ context.Context, told *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !told.PluginRegistered {
		log.Printf("the kubelet refuses %s: %s", d.name, told.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(
	_ context.Context, asked *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	volume := filepath.Join(disk, filepath.Base(asked.VolumeId))
	for _, path := range []string{volume, asked.TargetPath} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
	}
	mounted, err := isMounted(asked.TargetPath)
	if err == nil && !mounted {
		err = syscall.Mount(volume, asked.TargetPath, "", syscall.MS_BIND, "")
	}
	return &csi.NodePublishVolumeResponse{}, err
}

func (d *driver) NodeUnpublishVolume(
	_ context.Context, asked *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	// After a boot nothing is mounted there, and the kubelet asks all the same.
	if err := syscall.Unmount(asked.TargetPath, 0); err != nil && !gone(err) {
		return nil, err
	}
	if err := os.Remove(asked.TargetPath); err != nil && !gone(err) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EINVAL)
}

// Bind mounts of the same disk are told apart by nothing but the table of mounts.
func isMounted(path string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return strings.Contains(string(mounts), " "+path+" "), err
}

func serve(socket string, register func(*grpc.Server)) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	log.Fatal(server.Serve(listener))
}

func main() {
	d := &driver{}
	flag.StringVar(&d.name, "driver", "", "the driver's name")
	flag.StringVar(&d.node, "node", "", "the node's name")
	flag.Parse()
	d.socket = filepath.Join(kubelet, "plugins", d.name, "csi.sock")
	go serve(d.socket, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, d)
		csi.RegisterNodeServer(server, d)
	})
	serve(filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock"), func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, d)
	})
}
