package org.apache.kafka.common.test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.*;

/** Ports that nobody listens on, each given once, of the range -Dkavka.ports=FIRST-STOP. */
final class FreePorts {
    private static final String WRITTEN = System.getProperty("kavka.ports", "10000-30000");
    private static final int[] RANGE = Arrays.stream(WRITTEN.split("-")).mapToInt(Integer::parseInt).toArray();
    private static final Set<Integer> GIVEN = new HashSet<>();
    private static final Random RANDOM = new Random();

    private FreePorts() {
    }

    static synchronized int next() {
        while (true) {
            int port = RANGE[0] + RANDOM.nextInt(RANGE[1] - RANGE[0]);
            if (!GIVEN.add(port)) continue;
            try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return probe.getLocalPort();
            } catch (IOException isTaken) {
                continue;
            }
        }
    }
}
