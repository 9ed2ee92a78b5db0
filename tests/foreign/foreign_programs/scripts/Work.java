import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Threads that compress, keep maps and hold memory outside the heap; prints sums that do not depend on their order. */
public final class Work {
    private record Item(int number, String text) {}

    private sealed interface Shape permits Circle, Square {}

    private record Circle(int radius) implements Shape {}

    private record Square(int side) implements Shape {}

    private static long worked(int seed) throws Exception {
        byte[] data = new byte[200_000];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) ((i * 31 + seed) % (i % 3 == 0 ? 251 : 17));
        }
        CRC32 sum = new CRC32();
        for (int round = 0; round < 12; round++) {
            Deflater deflater = new Deflater(1 + round % 9);
            deflater.setInput(data);
            deflater.finish();
            byte[] packed = new byte[data.length * 2];
            int length = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, length);
            byte[] back = new byte[data.length];
            inflater.inflate(back);
            inflater.end();
            sum.update(back);
            ByteBuffer outside = ByteBuffer.allocateDirect(100_000 + round * 7_919);
            outside.put(back, 0, 100_000).flip();
            sum.update(outside);
        }
        Map<String, Item> items = new HashMap<>();
        for (int i = 0; i < 100_000; i++) {
            items.put("key " + i % 20_000, new Item(i, "text " + seed + i));
        }
        long total = items.values().stream().mapToLong(item -> item.number() + item.text().length()).sum();
        Shape shape = seed % 2 == 0 ? new Circle(seed) : new Square(seed);
        total += shape instanceof Circle circle ? circle.radius() * 3L : ((Square) shape).side() * 4L;
        return sum.getValue() + total;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Callable<Long>> calls = new ArrayList<>();
        for (int seed = 0; seed < 24; seed++) {
            int mine = seed;
            calls.add(() -> worked(mine));
        }
        long total = 0;
        for (Future<Long> future : pool.invokeAll(calls)) {
            total += future.get();
        }
        pool.shutdown();
        List<Thread> threads = IntStream.range(0, 300).mapToObj(i -> new Thread(() -> new byte[10_000].clone())).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        Process process = new ProcessBuilder("sh", "-c", "seq 1 1000").start();
        long said = process.getInputStream().readAllBytes().length;
        System.out.println(total + " " + said + " " + process.waitFor());
    }
}
